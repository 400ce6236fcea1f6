"""Entering a sandbox from outside: a process joins its namespaces and becomes its user.

It stays out of the sandbox's process namespace; what it forks is in it.
"""

import array
import fcntl
import os
import signal
import socket
from collections.abc import Callable

from services.worker.sandboxes.bubblewrap.launcher import syscalls
from services.worker.sandboxes.bubblewrap.launcher.box import USER, Box

# From linux/nsfs.h: _IO(0xb7, 0x2).
_NS_GET_PARENT = 0xB702
# Each fails only if a process inside kills the one that kills, in the instant between its start and its call.
_KILLS = 200
ALL_KINDS = (
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


def kill_all(box: Box) -> int:
    """One system call kills all but the first process, so no bomb of forks outruns it.

    The caller is in their process namespace. As root it is a user that they may send no signal; else they may
    kill or stop it first, and it is made again.
    """

    def kill() -> None:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return

    def act() -> None:
        join(box, syscalls.CLONE_NEWPID, is_user=False)
        for _ in range(_KILLS):
            killing = fork_into(kill)
            status = os.waitpid(killing, os.WUNTRACED)[1]
            if os.WIFSTOPPED(status):
                os.kill(killing, signal.SIGKILL)
                os.waitpid(killing, 0)
            elif not status:
                return
        raise ProcessLookupError

    return fork_into(act)


def listen_inside(box: Box, port: int, send_to: socket.socket, reply: bytes) -> int:
    """Makes the socket in the sandbox's network namespace and sends it, with the reply, to the worker."""

    def act() -> None:
        join(box, syscalls.CLONE_NEWNET, is_user=False)
        with socket.create_server(("127.0.0.1", port), backlog=64) as listening:
            rights = array.array("i", [listening.fileno()])
            send_to.sendmsg([reply], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])

    return fork_into(act)


def join(box: Box, kinds: int, *, is_user: bool = True) -> None:
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
