"""What an agent leaves beside the folders of its task, in a root that is writable as in a container."""

import asyncio
import io
import re
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from posixpath import basename, normpath

from proctor.values.rollout import RolloutTask
from services.common.sandboxes.errors import FilesRefused
from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import Command, RootParts, TarLimits
from services.common.sandboxes.tar_files import read_files
from services.worker.rollouts.errors import FolderNotGiven
from services.worker.verification.bundles import inflated
from services.worker.verification.pytest_runner import RUNNER

# Scratch files of agents are many, and would be read as work: those that the task names are taken.
_SCRATCH = re.compile(rb"/tmp/([\w.+@-]+)")
# Of shells and programs, and of Python.
_READ_ONLY = re.compile(
    r"(/[^\s:'‘’\"]+)['’\"]?: Read-only file system|Read-only file system: ['\"](/[^'\"]+)"
)
# Settings in a home folder, such as `.local` and its packages, would steer the tests.
_HIDDEN = ("home/.*", "root/.*")
_LOGS = "/logs"
_BEGINS_WITH = frozenset({".", "home", "mnt", "opt", "root", "srv", "tmp", "var", "var/log", "var/tmp"})
# Files that the solution left, of which some are not taken. The installer of uv writes `env`.
_FIND = (
    'find $PLACES -xdev "$@" -type f -cnewer "$0" -printf "%p\\n" 2>/dev/null '
    '| grep -v -E "__pycache__|/[.](local|cargo)/(bin/)?env$" | head -n 200'
)


def root_parts(task: RolloutTask, programs: Sequence[str]) -> RootParts:
    """`programs` are folders of the sandbox's own. A blocking call: it reads the tests."""
    own = (*programs, RUNNER, _LOGS, *task.folders, *((task.tests_folder,) if task.tests else ()))
    named = {each.decode().rstrip(".") for each in _SCRATCH.findall(_said(task))}
    return RootParts(
        without=(*(each.lstrip("/") for each in own), *_HIDDEN, "tmp/*"),
        kept=tuple(f"tmp/{each}" for each in sorted(named - {""})),
    )


def not_writable(output: str) -> str:
    """The first path that a command could not write; empty where there is none."""
    found = _READ_ONLY.search(output)
    return (found[1] or found[2]) if found else ""


def in_own_folders(task: RolloutTask) -> RolloutTask:
    """For a sandbox whose root is read-only: a task that works in the root works in its folder instead.

    Raises FolderNotGiven.
    """
    if task.cwd == "/":
        return replace(task, cwd=task.workdir)
    if not any(f"{task.cwd}/".startswith(f"{folder}/") for folder in (task.workdir, *task.folders)):
        raise FolderNotGiven(folder=task.cwd)
    return task


async def taken_root(sandbox: Sandbox, limits: TarLimits, parts: RootParts) -> bytes:
    """A tar by paths from the root; empty where it has nothing but the folders that it began with.

    Raises SandboxError.
    """
    with io.BytesIO() as taken:
        await sandbox.get_root(taken, limits, parts)
        tar = taken.getvalue()
    return tar if await asyncio.to_thread(_has_more, tar) else b""


def _has_more(tar: bytes) -> bool:
    if not tar:
        return False
    try:
        with tarfile.open(fileobj=io.BytesIO(tar), mode="r|") as opened:
            return any(normpath(each.name) not in _BEGINS_WITH for each in opened)
    except (tarfile.TarError, ValueError, EOFError, LookupError, OverflowError, RecursionError) as error:
        raise FilesRefused(path="/", problem=f"the tar is broken ({type(error).__name__}).") from error


async def not_taken(
    sandbox: Sandbox, task: RolloutTask, root: bytes, programs: Sequence[str]
) -> tuple[str, ...]:
    """Files that a solution left and the task names, but are not in `root`. Raises SandboxError.

    The first of `programs` is the folder of the solution.
    """
    own = [word for each in (*programs, RUNNER) for word in ("-path", each, "-prune", "-o")]
    places = "/" if sandbox.has_root else "/tmp /home"  # noqa: S108  # inside
    command = Command(("sh", "-c", _FIND, f"{programs[0]}/solve.sh", *own), cwd="/", env={"PLACES": places})
    found = await sandbox.run(command)
    return await asyncio.to_thread(_of_task, found.text.splitlines(), task, root)


def _of_task(files: list[str], task: RolloutTask, root: bytes) -> tuple[str, ...]:
    taken = {file.name for file in read_files(io.BytesIO(root), "/", TarLimits())} if root else set()
    text = _said(task)
    left = (each for each in files if each[1:] not in taken and basename(each).encode() in text)
    folders = (task.workdir, *task.folders)
    return tuple(each for each in left if not any(_is_in(each, folder) for folder in folders))


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")


def _said(task: RolloutTask) -> bytes:
    return task.instruction.encode() + inflated(task.tests)
