"""Programs of ours in a sandbox of Modal, where every command starts as root: those of others give that up.

They need python3. Programs of ours stay root, so nothing else inside can end, trace or imitate them.
"""

from collections.abc import Sequence

from services.common.sandboxes.sandbox import SandboxLimits
from services.worker.sandboxes.container.programs import relay_process

USER = 10_000
HEARTBEAT = b"."
_OPEN_FILES, _CORE_BYTES = 1024, 0
# Python reads no variables, no packages and no files of the sandbox's own folders.
_ALONE = ("-I", "-S", "-c")

# The sandbox ends with it: at the end of its lifetime, and when no heartbeat comes any more. Streams of
# Modal's do not end with the worker.
_HOLD = """
import os, select, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
end, silence = time.monotonic() + float(sys.argv[1]), float(sys.argv[2])
while (left := end - time.monotonic()) > 0:
    if not select.select([0], [], [], min(left, silence))[0] or not os.read(0, 4096):
        break
os._exit(0)
"""
# Folders as other engines give them: without what the image has there. Later programs of ours are run by the
# python3 that is found here, if no one else can replace it.
_PREPARE = """
import os, shutil, stat, sys
user = int(sys.argv[1])
for folder in sorted(sys.argv[2:]):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder, exist_ok=True)
    os.chown(folder, user, user)
os.makedirs("/tmp", exist_ok=True)
os.chmod("/tmp", 0o1777)
python = os.path.realpath(sys.executable)
for path in (python, os.path.realpath(os.__file__)):
    while path != "/":
        found = os.stat(path)
        if found.st_uid or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            sys.exit(f"{path} is not root's alone")
        path = os.path.dirname(path)
print(python, end="")
"""
# It gives up capabilities first, then its user; set-user-id programs give nothing back. Its environment has
# Modal's own variables, which no later program gets. Of the signals that python3 ignores, that of a file over
# its limit stays so, which makes it an error as on a full disk.
_WITHOUT_PRIVILEGES = """
import ctypes, os, resource, signal, sys
user, *limits = map(int, sys.argv[1:6])
kinds = (resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)
for kind, limit in zip(kinds, limits):
    resource.setrlimit(kind, (limit, limit))
prctl = ctypes.CDLL(None, use_errno=True).prctl
for capability in range(64):
    prctl(24, capability, 0, 0, 0)
if prctl(38, 1, 0, 0, 0):
    sys.exit("its privileges cannot be given up")
os.setgroups([])
os.setresgid(user, user, user)
os.setresuid(user, user, user)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
os.execvpe(sys.argv[6], sys.argv[6:], {"PATH": os.defpath})
"""
# By the privileges of the user, so programs of ours stay. Who may send a signal goes by two users of each
# side: nothing inside can end this one.
_KILL = """
import os, signal, sys
user = int(sys.argv[1])
os.setresuid(user + 1, user, user + 1)
try:
    os.kill(-1, signal.SIGKILL)
except (ProcessLookupError, PermissionError):
    pass
"""


def hold(lifetime_seconds: float, silence_seconds: float) -> Sequence[str]:
    """The first process. It reads heartbeats, and ends after a silence."""
    return ("python3", *_ALONE, _HOLD, f"{lifetime_seconds:g}", f"{silence_seconds:g}")


def prepare(folders: Sequence[str]) -> Sequence[str]:
    """Makes empty folders of the user's own, and prints the path of python3."""
    return ("python3", *_ALONE, _PREPARE, str(USER), *folders)


def without_privileges(python: str, argv: Sequence[str], limits: SandboxLimits) -> Sequence[str]:
    """The command as a user without privileges, within the limits that the kernel keeps for a process."""
    kept = (limits.processes, limits.disk_bytes, _OPEN_FILES, _CORE_BYTES)
    return (python, *_ALONE, _WITHOUT_PRIVILEGES, str(USER), *map(str, kept), *argv)


def kill(python: str) -> Sequence[str]:
    """Ends every process of the user's, and none of ours."""
    return (python, *_ALONE, _KILL, str(USER))


def relay(python: str) -> Sequence[str]:
    return (python, *relay_process()[1:])
