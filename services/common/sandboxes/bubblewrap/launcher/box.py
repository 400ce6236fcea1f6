"""A sandbox from the launcher's side: bubblewrap makes and holds it, and its first process does nothing."""

import json
import os
import resource
import select
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from services.common.sandboxes.bubblewrap.launcher import syscalls
from services.common.sandboxes.bubblewrap.launcher.cgroups import Group
from services.common.sandboxes.bubblewrap.launcher.uses_watch import UsesWatch

# As in `_PASSWD` below; programs refuse to work, or work otherwise, as root.
USER = 1000
# It ignores what a terminal sends, holds no file of ours, and never ends. Processes that lost their parents
# become its children: it waits for them beside one of its own, or ignores their signal and has none.
_FIRST_PROCESS = "trap '' HUP INT TERM; echo ready; exec </dev/null >/dev/null 2>&1; "
_WITH_CHILD = "while :; do sleep 2147483; done"
_WITHOUT_CHILD = "exec env --ignore-signal=CHLD sleep 2147483647"
# They are in memory, as are the writable ones that are ordered.
OWN_FOLDERS = ("/tmp", "/home", "/dev/shm")  # noqa: S108  # inside
# The one that may be written to where all else is read-only: packages refuse to work without it.
_SCRATCH = "/tmp"  # noqa: S108  # inside
# Beside those of a writable root, as in an image.
_OF_ROOT = ("/home", "/mnt", "/opt", "/root", "/srv", "/var/log", "/var/tmp")  # noqa: S108  # inside
# A start takes some ten milliseconds; on a machine without memory it may hang.
_START_SECONDS = 10.0
_MIB = 1024**2
_PASSWD = b"root:x:0:0:root:/root:/bin/sh\nsandbox:x:1000:1000:sandbox:/home:/bin/bash\n"
_GROUP = b"root:x:0:\nsandbox:x:1000:\n"
_HOSTS = b"127.0.0.1 localhost sandbox\n::1 localhost\n"


class BoxFailed(Exception):
    """bubblewrap could not make the sandbox; the message is its own."""


@dataclass(slots=True)
class Box:
    number: int
    uid: int
    first_process: int
    """Its process 1, numbered as outside."""
    holder: int
    """bubblewrap itself, outside."""
    pidfd: int
    user_namespace: int
    group: Group | None
    limits: dict[str, Any]
    ends_at: float
    mounts: list[str]
    """Folders in memory. Nothing inside can replace them, but it can move a folder above one."""
    watched: list[int] = field(default_factory=list)
    """The open mounts, where no control group limits what is in them."""
    uses: UsesWatch | None = None
    is_ending: bool = False

    def kill(self) -> None:
        """All of its processes end with its first one."""
        if not self.is_ending:
            self.is_ending = True
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def is_alive(self) -> bool:
        return not _is_ready(self.pidfd, 0)

    def release(self) -> None:
        """Its end. The numbers of its files may be those of another box from then on."""
        self.is_ending = True
        for file in (self.pidfd, self.user_namespace, *self.watched):
            os.close(file)
        if self.uses is not None:
            self.uses.close()


def open_box(number: int, request: dict[str, Any], group: Group | None, program: bytes) -> Box:
    """Returns when its first process runs. Raises BoxFailed and OSError; nothing is left behind then."""
    info, block, output = os.pipe(), os.pipe(), os.pipe()
    errors, uid = os.memfd_create("errors"), int(request["uid"])
    holder = os.fork()
    if holder == 0:
        _exec_bubblewrap(request, program, (info[1], block[0], output[1], errors))
    for file in (info[1], block[0], output[1]):
        os.close(file)
    is_open = False
    try:
        deadline = time.monotonic() + _START_SECONDS
        first = json.loads(_read(info[0], deadline) or b"{}").get("child-pid")
        if first is None:
            raise BoxFailed(_message(errors))
        if group is not None:
            try:
                group.add(holder, first)
            except ProcessLookupError as error:
                # It ended as soon as it began.
                raise BoxFailed(_message(errors)) from error
        # Only now may its first process run: it is in its control group.
        os.write(block[1], b".")
        if _read(output[0], deadline, minimum=6) != b"ready\n":
            raise BoxFailed(_message(errors))
        ends_at = time.monotonic() + float(request["lifetime_seconds"])
        user_namespace = os.open(f"/proc/{first}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        pidfd = os.pidfd_open(first)
        held = (number, uid, first, holder, pidfd, user_namespace, group)
        is_open = True
        return Box(*held, request["limits"], ends_at, _mounts(request))
    finally:
        if not is_open:
            # Its first process dies with it (`--die-with-parent`).
            os.kill(holder, signal.SIGKILL)
            os.waitpid(holder, 0)
        for file in (info[0], block[1], output[0], errors):
            os.close(file)


def _mounts(request: dict[str, Any]) -> list[str]:
    own = ("/", "/dev/shm") if request["plain"] else OWN_FOLDERS  # noqa: S108  # inside
    return list(dict.fromkeys((*request["writable"], *own)))


def _read(file: int, deadline: float, minimum: int = 1) -> bytes:
    """Reads until it ends, or has `minimum` bytes where that is more than one."""
    read = b""
    while (left := deadline - time.monotonic()) > 0 and _is_ready(file, left):
        part = os.read(file, 4096)
        read += part
        if not part or (1 < minimum <= len(read)):
            return read
    return read


def _is_ready(file: int, seconds: float) -> bool:
    """Polls: a launcher of many sandboxes has files with numbers above those of select."""
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _message(errors: int) -> str:
    os.lseek(errors, 0, os.SEEK_SET)
    lines = os.read(errors, 4096).decode("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("bwrap: ") if lines else "bubblewrap ended without a message"


def _exec_bubblewrap(request: dict[str, Any], program: bytes, files: Sequence[int]) -> None:
    """Runs in the forked process: never returns."""
    info, block, output, errors = files
    try:
        syscalls.die_with(os.getppid())
        os.setsid()
        nothing = os.open("/dev/null", os.O_RDONLY)
        for source, target in ((nothing, 0), (output, 1), (errors, 2)):
            os.dup2(source, target)
        limit_resources(request["limits"])
        _become(int(request["uid"]))
        given = [_memory_file(content) for content in (_PASSWD, _GROUP, _HOSTS)]
        arguments = list(_arguments(request, given))
        held = {"--info-fd": info, "--block-fd": block, "--seccomp": _memory_file(program)}
        for option, file in held.items():
            arguments += [option, str(file)]
        for file in (*held.values(), *given):
            os.set_inheritable(file, True)  # noqa: FBT003  # positional only
        path = str(request["program"])
        first = _FIRST_PROCESS + (_WITHOUT_CHILD if request["can_ignore"] else _WITH_CHILD)
        os.execve(path, [path, *arguments, "--", "/bin/sh", "-c", first], {})  # noqa: S606  # our own list
    except (OSError, LookupError, ValueError, TypeError) as error:
        os.write(errors, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(126)


def can_ignore_children() -> bool:
    """`env` has the option since version 8.31 of GNU's; shells ignore no SIGCHLD."""
    try:
        errors = [(os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)]
        tried = os.posix_spawn(
            "/usr/bin/env", ("env", "--ignore-signal=CHLD", "true"), {}, file_actions=errors
        )
    except OSError:
        return False
    return os.waitpid(tried, 0)[1] == 0


def _become(uid: int) -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    # The change has cleared it.
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)


def limit_resources(limits: dict[str, Any]) -> None:
    """`data_bytes` bounds one process where no control group bounds all of them."""
    bounds = {
        resource.RLIMIT_CORE: 0,
        # Not less than 1 GiB: files in memory, as of compilers, may be sparse.
        resource.RLIMIT_FSIZE: max(int(limits["disk_bytes"]), 1024 * _MIB),
        # The usual soft limit of Linux, which programs expect.
        resource.RLIMIT_NOFILE: 1024,
        resource.RLIMIT_MEMLOCK: 64 * 1024,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    if limits.get("data_bytes"):
        bounds[resource.RLIMIT_DATA] = int(limits["data_bytes"])
    for kind, wanted in bounds.items():
        hard = resource.getrlimit(kind)[1]
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (value, value))


def _memory_file(content: bytes) -> int:
    file = os.memfd_create("given")
    os.write(file, content)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _arguments(request: dict[str, Any], given: Sequence[int]) -> Iterator[str]:
    limits = request["limits"]
    passwd, group, hosts = map(str, given)
    yield from ("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts")
    yield from ("--unshare-cgroup-try", "--disable-userns", "--uid", str(USER), "--gid", str(USER))
    yield from ("--hostname", "sandbox", "--as-pid-1", "--die-with-parent", "--new-session")
    yield from ("--cap-drop", "ALL", "--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin")
    has_root = bool(request["plain"])
    if has_root:
        yield from _in_memory("/", limits["disk_bytes"])
    yield from ("--ro-bind", "/usr", "/usr")
    for name in ("bin", "sbin", "lib", "lib64"):
        # A link in a root that is writable could be replaced.
        bound = ("--ro-bind-try", f"/usr/{name}", f"/{name}")
        yield from bound if has_root else ("--symlink", f"usr/{name}", f"/{name}")
    yield from _in_memory("/etc", _MIB) if has_root else ("--perms", "0755", "--dir", "/etc")
    # Programs that speak TLS do not begin without certificates, whatever they connect to.
    for name in ("alternatives", "ld.so.cache", "ssl/certs"):
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    for file, name in ((passwd, "passwd"), (group, "group"), (hosts, "hosts")):
        yield from ("--perms", "0644", "--ro-bind-data", file, f"/etc/{name}")
    for source, target in request["read_only"]:
        yield from ("--ro-bind", source, target)
    yield from ("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev")
    yield from ("--size", str(16 * _MIB), "--perms", "1777", "--tmpfs", "/dev/shm")  # noqa: S108  # inside
    yield from ("--remount-ro", "/dev", "--ro-bind", "/dev/null", "/proc/cmdline", "--dir", "/run")
    yield from _folders(request)
    yield from ("--chdir", request["writable"][0], "--remount-ro", "/etc" if has_root else "/")


def _folders(request: dict[str, Any]) -> Iterator[str]:
    """Those that may be written to, beside `/dev/shm`."""
    size = request["limits"]["disk_bytes"]
    if not request["plain"]:
        yield from _in_memory("/tmp", 64 * _MIB, "1777")  # noqa: S108  # inside
        yield from _in_memory("/home", 16 * _MIB)
    for folder in request["writable"]:
        yield from _in_memory(folder, size)
    if request["plain"]:
        yield from ("--perms", "1777", "--dir", "/tmp")  # noqa: S108  # inside
        for folder in (*_OF_ROOT, *request["plain"]):
            yield from ("--perms", "0755", "--dir", folder)
    if request["is_read_only"]:
        for folder in _mounts(request):
            if folder != _SCRATCH:
                yield from ("--remount-ro", folder)


def _in_memory(folder: str, size: int, mode: str = "0755") -> tuple[str, ...]:
    return ("--size", str(size), "--perms", mode, "--tmpfs", folder)
