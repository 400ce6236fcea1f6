"""Entering a sandbox from outside: a process joins its namespaces and becomes its user.

It stays out of the sandbox's process namespace; what it forks is in it.
"""

import array
import fcntl
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from services.common.sandboxes.bubblewrap.launcher import syscalls
from services.common.sandboxes.bubblewrap.launcher.box import USER, Box

# From linux/nsfs.h: _IO(0xb7, 0x2).
_NS_GET_PARENT = 0xB702
# One fails where a process inside kills the one that kills, between its start and its call. Kills from
# outside follow each: nothing inside can prevent those.
_KILLS = 200
# A killed process ends within milliseconds, later on a busy machine.
_END_SECONDS = 1.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
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
    kill or stop it first. Those that could are then killed one by one from outside, and it is made again.
    """

    def act() -> None:
        join(box, syscalls.CLONE_NEWPID, is_user=False)
        processes = _Processes(box)
        # Until they have ended their memory counts, and the next command would be killed for it.
        awaited = processes.names() if box.watched else []
        for _ in range(_KILLS):
            if _kill_from_inside():
                break
            processes.kill()
        else:
            raise ProcessLookupError
        processes.wait_for_ends(awaited)

    return fork_into(act)


def _kill_from_inside() -> bool:
    """False where the process that kills was killed or stopped first, or could not be made."""

    def kill() -> None:
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)

    try:
        killing = fork_into(kill)
    except BlockingIOError:
        # The processes inside are as many as their user may have.
        return False
    status = os.waitpid(killing, os.WUNTRACED)[1]
    if os.WIFSTOPPED(status):
        os.kill(killing, signal.SIGKILL)
        os.waitpid(killing, 0)
    return not status


class _Processes:
    """The processes of a box but its first one, by the folders of their `/proc`.

    There are none where this process has no way in (`watch`), or the box has ended.
    """

    def __init__(self, box: Box) -> None:
        self._folder: int | None = None
        with suppress(OSError):
            folder = os.open(f"/proc/{box.first_process}/root/proc", _FOLDER)
            # The number of an ended process may be another's by now, and the folder the machine's own.
            if box.is_alive():
                self._folder = folder

    def names(self) -> list[str]:
        if self._folder is None:
            return []
        names = os.listdir(self._folder)  # noqa: PTH208  # pathlib takes no open folder
        return [name for name in names if name.isdecimal() and name != "1"]

    def kill(self) -> None:
        """The caller is in an outer process namespace, and may send a signal to the folder of a process
        (pidfd_send_signal(2)).
        """
        for name in self.names():
            with suppress(OSError):
                process = os.open(name, _FOLDER, dir_fd=self._folder)
                try:
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                finally:
                    os.close(process)

    def wait_for_ends(self, names: Sequence[str]) -> None:
        deadline = time.monotonic() + _END_SECONDS
        while not set(names).isdisjoint(self.names()) and time.monotonic() < deadline:
            select.select([], [], [], 0.001)


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
