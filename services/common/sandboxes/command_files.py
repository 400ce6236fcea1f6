"""Files into a sandbox and out of it, by tar in a command that runs inside: the same for all engines."""

import asyncio
import tarfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import BinaryIO, Protocol

from services.common.sandboxes.errors import FilesOverLimit, FilesRefused, SandboxBlocked
from services.common.sandboxes.output import KeptOutput, SpooledOutput
from services.common.sandboxes.sandbox import Command, CommandResult, Ended, RootParts, TarLimits
from services.common.sandboxes.tar_files import check_tar

# Enough for 256 MiB through tar on a busy machine. Files that an agent made to hang fail then.
FILES_SECONDS = 120.0
# Exit codes of a shell that cannot execute a program, or does not find it.
_NOT_STARTED = (126, 127)
_UNPACK = '[ -d "$1" ] || mkdir -p -- "$1" && exec tar -x -f - -C "$1" -o'
# GNU's tar leaves out what it cannot read, and says so by its exit code. busybox's has no such options, and
# does not read the variable.
# A folder that its owner has closed is opened.
_OPEN = '[ -r "$1" ] && [ -x "$1" ] || chmod u+rwx "$1"; '
# A folder above it may have been moved, and a link be in its place.
_ITSELF = '[ "$(cd -P -- "$1" && pwd)" = "$1" ] || exit 4; '
# One file system: what is mounted in it is not in the tar, but for the folders of the mounts.
_PACK_ROOT = (
    'cd / && find . -xdev -mindepth 1 "$@" \\( -type f -o -type l -o -type d \\) -print0 2>/dev/null '
    "| LC_ALL=C sort -z "
    '| TAR_OPTIONS="--ignore-failed-read" tar -c -f - --no-recursion --null -T - 2>/dev/null'
)
# The machine's own, which are mounts or lead to them.
_OF_MACHINE = ("bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr")
_PACK = 'TAR_OPTIONS="--sort=name --ignore-failed-read" exec tar -c -f - -C "$1" . 2>/dev/null'


class RunsCommands(Protocol):
    async def run_into(self, command: Command, kept: KeptOutput) -> CommandResult:
        """Runs a command as `Sandbox.run` does; its output goes to `kept`."""
        ...


# Packs a folder by tar alone: each program that a machine starts costs a millisecond or two.
Pack = Callable[[KeptOutput], Awaitable[CommandResult]]
PACK = ("tar", "--sort=name", "--ignore-failed-read", "-c", "-f", "-", ".")


async def put_files(sandbox: RunsCommands, path: str, tar: bytes, *, is_there: bool = False) -> None:
    """`is_there`: the folder was, when the sandbox was opened; a command may have moved it since."""
    files = _without_own_folder(tar)
    script = Command(("sh", "-c", _UNPACK, "sh", path), "/", stdin=files, timeout_seconds=FILES_SECONDS)
    quick = replace(script, argv=("tar", "-x", "-f", "-", "-C", path, "-o"))
    result = await sandbox.run_into(quick if is_there else script, KeptOutput(2000))
    if is_there and _has_failed(result):
        result = await sandbox.run_into(script, KeptOutput(2000))
    _check_started(result)
    if result.ended is Ended.TIMED_OUT:
        # They are bounded, so it is the machine, or what an agent left there.
        raise SandboxBlocked(problem=f"files for {path} took longer than {FILES_SECONDS:g} s.")
    if not result.is_success:
        is_ended = result.ended is Ended.EXITED
        reason = f"tar ended with exit code {result.exit_code}." if is_ended else result.ended.value
        raise FilesRefused(path=path, problem=_first_line(result) or reason)


async def get_files(
    sandbox: RunsCommands, path: str, into: BinaryIO, limits: TarLimits, quick: Pack | None = None
) -> None:
    """`quick` fails where the folder is closed or a link. Without it an image may have a link in the path."""
    kept, start = SpooledOutput(into, limits.stream_bytes), into.tell()
    result = await quick(kept) if quick else None
    if result is None or _has_failed(result):
        into.seek(start)
        into.truncate()
        kept = SpooledOutput(into, limits.stream_bytes)
        script = f"{_OPEN}{_ITSELF if quick else ''}{_PACK}"
        command = Command(("sh", "-c", script, "sh", path), "/", timeout_seconds=FILES_SECONDS)
        result = await sandbox.run_into(command, kept)
    _check_packed(result, kept, path, limits)
    into.seek(start)
    await asyncio.to_thread(check_tar, into, path, limits)
    into.seek(start)


async def get_root_files(
    sandbox: RunsCommands, into: BinaryIO, limits: TarLimits, parts: RootParts, mounts: Sequence[str]
) -> None:
    """`mounts` are folders that are none of the root's own."""
    kept, start = SpooledOutput(into, limits.stream_bytes), into.tell()
    command = Command(
        ("sh", "-c", _PACK_ROOT, "sh", *_pruned(parts, mounts)), "/", timeout_seconds=FILES_SECONDS
    )
    result = await sandbox.run_into(command, kept)
    _check_packed(result, kept, "/", limits)
    into.seek(start)
    await asyncio.to_thread(check_tar, into, "/", limits)
    into.seek(start)


def _pruned(parts: RootParts, mounts: Sequence[str]) -> list[str]:
    left_out = (*_OF_MACHINE, *(mount.lstrip("/") for mount in mounts), *parts.without)
    taken = [each for path in parts.kept for each in (path, f"{path}/*")]
    kept = ["!", "(", *_any_of(taken), ")"] if taken else []
    return ["(", "(", *_any_of(left_out), ")", *kept, ")", "-prune", "-o"]


def _any_of(patterns: Sequence[str]) -> list[str]:
    return [word for pattern in patterns for word in ("-o", "-path", f"./{pattern}")][1:]


def _check_packed(result: CommandResult, kept: SpooledOutput, path: str, limits: TarLimits) -> None:
    _check_started(result)
    if kept.total > limits.stream_bytes:
        raise FilesOverLimit(path=path, problem=f"they have more than {limits.total_bytes:,} bytes.")
    if result.ended is Ended.TIMED_OUT or result.exit_code not in (0, 1):
        reason = "it took too long." if result.ended is Ended.TIMED_OUT else "tar could not read them."
        raise FilesRefused(path=path, problem=reason)


def _has_failed(result: CommandResult) -> bool:
    """Whether the command itself failed, and not its time or memory."""
    return result.ended is Ended.EXITED and not result.is_success


def _check_started(result: CommandResult) -> None:
    """Files that nothing could move are not files that were refused, which would be a score."""
    if result.ended is Ended.EXITED and result.exit_code in _NOT_STARTED:
        raise SandboxBlocked(problem=f"tar does not start in it ({_first_line(result) or result.exit_code}).")


def _without_own_folder(tar: bytes) -> bytes:
    """The tar of a folder begins with the folder itself, whose mode and time only its owner may set."""
    try:
        first = tarfile.TarInfo.frombuf(tar[: tarfile.BLOCKSIZE], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return tar
    return tar[tarfile.BLOCKSIZE :] if first.isdir() and first.name in (".", "./", "") else tar


def _first_line(result: CommandResult) -> str:
    lines = result.text.strip().splitlines()
    return lines[0][:200] if lines else ""
