"""Entering a sandbox from outside: a process joins its namespaces, gives up everything, and runs a command
there.

Two processes: the outer one joins and waits, and stays out of the sandbox's process namespace and control
group; the inner one is in both.
"""

import array
import fcntl
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any

from services.worker.sandboxes.bubblewrap.launcher import syscalls
from services.worker.sandboxes.bubblewrap.launcher.box import USER, Box, limit_resources

# From linux/nsfs.h: _IO(0xb7, 0x2).
_NS_GET_PARENT = 0xB702
# Code of models runs after the worker's own loops, which keep requests and ack deadlines going.
_NICE = 10
# `RLIMIT_NOFILE` of the sandbox: no file of the launcher is numbered higher.
_MAX_FILES = 1024
_KINDS = (
    syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWPID
    | syscalls.CLONE_NEWNET
    | syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWCGROUP
)


def fork_into(act: Callable[[], None]) -> int:
    """Forks a process that acts and ends with 0, or with 125 and a sentence on standard error."""
    process = os.fork()
    if process:
        return process
    try:
        syscalls.die_with(os.getppid())
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        act()
        os._exit(0)
    except (OSError, LookupError, ValueError, TypeError) as error:
        os.write(2, f"launcher: {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(125)


def run_command(box: Box, request: dict[str, Any], files: Sequence[int], program: bytes) -> int:
    """The waiting process; its exit code is that of the command, or 128 + signal. `files`: 0, 1 and 2.

    The kernel counts waiting processes as the sandbox's own, so `waiting` of the request is added.
    """
    maximum = box.limits["processes"] + request["waiting"]

    def act() -> None:
        groups = _open_groups(box)
        _take(files)
        limit_resources(box.limits)
        os.nice(_NICE)
        _join(box, _KINDS)
        _wait(fork_into(lambda: _become_command(request, groups, program, maximum)))

    return fork_into(act)


def kill_all(box: Box) -> int:
    """One system call kills all but the first process, so no bomb of forks outruns it."""

    def kill() -> None:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return

    def act() -> None:
        _join(box, _KINDS)
        _wait(fork_into(kill))

    return fork_into(act)


def listen_inside(box: Box, port: int, send_to: socket.socket, reply: bytes) -> int:
    """Makes the socket in the sandbox's network namespace and sends it, with the reply, to the worker."""

    def act() -> None:
        _join(box, syscalls.CLONE_NEWNET, is_user=False)
        with socket.create_server(("127.0.0.1", port), backlog=64) as listening:
            rights = array.array("i", [listening.fileno()])
            send_to.sendmsg([reply], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])

    return fork_into(act)


def _open_groups(box: Box) -> list[int]:
    """Opened outside: inside, they cannot be seen."""
    if box.group is None:
        return []
    return [os.open(file, os.O_WRONLY | os.O_CLOEXEC) for file in box.group.process_files]


def _take(files: Sequence[int]) -> None:
    for target, source in enumerate(files):
        os.dup2(source, target)


def _join(box: Box, kinds: int, *, is_user: bool = True) -> None:
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    if os.geteuid() == 0:
        os.setgroups([])
    else:
        # The namespace that bubblewrap made first: its owner has all capabilities in it, and so in those
        # below.
        parent = fcntl.ioctl(box.user_namespace, _NS_GET_PARENT)
        syscalls.setns(parent, syscalls.CLONE_NEWUSER)
        os.close(parent)
    syscalls.setns(box.pidfd, kinds)
    if is_user:
        syscalls.setns(box.user_namespace, syscalls.CLONE_NEWUSER)
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)
        # Changing the user has cleared both.
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)


def _wait(process: int) -> None:
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _become_command(request: dict[str, Any], groups: Sequence[int], program: bytes, processes: int) -> None:
    """Ends as the command, or with 126 and a sentence on standard error."""
    # The limit of last resort where no control group counts processes.
    resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
    # The inner process joins its control group itself: 0 means the writer.
    for group in groups:
        os.write(group, b"0")
    os.setsid()
    try:
        os.chdir(request["cwd"])
        # Everything beyond the three of the command: no file of ours gets inside.
        os.closerange(3, max(_MAX_FILES, *groups, 3) + 1)
        syscalls.drop_capabilities()
        # Last: the filter refuses some of the calls above.
        syscalls.install_filter(program)
        os.execvpe(request["argv"][0], request["argv"], request["env"])  # noqa: S606  # inside
    except OSError as error:
        sys.stderr.write(f"{request['argv'][0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
