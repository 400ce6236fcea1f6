"""The spawner of a sandbox: a process that has joined it and given up everything, and starts its commands.

It joins once for all of them, which takes as long as a command. It is in the sandbox's control group, and so
is what it starts. It is not in its process namespace: nothing inside sees it or can send it a signal.
"""

import array
import errno
import json
import os
import resource
import select
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from services.common.sandboxes.bubblewrap.launcher import syscalls
from services.common.sandboxes.bubblewrap.launcher.box import Box, limit_resources
from services.common.sandboxes.bubblewrap.launcher.enter import ALL_KINDS, fork_into, join

# A SOCK_SEQPACKET message is one piece; the client refuses requests beyond half of this.
PACKET_BYTES = 256 * 1024
# Standard input, output and error of a command.
_FILES = 3
# Code of models runs after the worker's own loops, which keep requests and ack deadlines going.
_NICE = 10
# The first process and the spawner count as the sandbox's own.
_OWN_PROCESSES = 2
# Python ignores the second, and the launcher the first. What is over RLIMIT_FSIZE stays an error.
_DEFAULT_SIGNALS = (signal.SIGINT, signal.SIGPIPE)
_MAX_NAME_CHARACTERS = 1000
_REQUESTED = ("id", "argv", "cwd", "env", "needs_folder")

Request = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Spawner:
    """The launcher's side: the process, and a socket to it."""

    process: int
    control: socket.socket

    def send(self, request: Request, files: Sequence[int]) -> None:
        """Raises BrokenPipeError where it has ended, and BlockingIOError where it takes no more."""
        packet = json.dumps({name: request[name] for name in _REQUESTED}).encode()
        self.control.sendmsg([packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))])

    def ended(self) -> Iterator[tuple[int, int]]:
        """Requests whose commands have ended, and their exit codes or 128 + signal."""
        with suppress(BlockingIOError, ConnectionResetError):
            while packet := self.control.recv(PACKET_BYTES):
                number, code = json.loads(packet)
                yield number, code


def start_spawner(box: Box, program: bytes) -> Spawner:
    own, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    own.settimeout(0)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PACKET_BYTES)

    def act() -> None:
        _enter(box, its.fileno(), program)
        _serve(socket.socket(fileno=_FILES))

    with its:
        return Spawner(fork_into(act), own)


def _enter(box: Box, control: int, program: bytes) -> None:
    """The socket gets the number behind those of a command's files."""
    groups = [] if box.group is None else box.group.process_files
    # Before it joins, since inside there are no such files. 0 means the writer.
    for group in groups:
        group.write_text("0", encoding="ascii")
    nothing = os.open("/dev/null", os.O_RDWR)
    for number in range(_FILES):
        os.dup2(nothing, number)
    last = max(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208  # names are numbers here
    signal.set_wakeup_fd(-1)
    limit_resources(box.limits)
    # The limit of last resort where no control group counts processes.
    most = box.limits["processes"] + _OWN_PROCESSES
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    os.nice(_NICE)
    join(box, ALL_KINDS)
    # No file of the launcher gets inside.
    os.dup2(control, _FILES, inheritable=False)
    os.closerange(_FILES + 1, last + 1)
    syscalls.drop_capabilities()
    # Last: the filter refuses some of the calls above.
    syscalls.install_filter(program)


def _serve(control: socket.socket) -> None:
    """Serves until the launcher closes the socket."""
    # File of a process to the process and its request.
    running: dict[int, tuple[int, int]] = {}
    while True:
        for file in select.select([control.fileno(), *running], [], [])[0]:
            if file in running:
                process, number = running.pop(file)
                os.close(file)
                _, status = os.waitpid(process, 0)
                code = os.waitstatus_to_exitcode(status)
                _answer(control, number, code if code >= 0 else 128 - code)
            elif not _receive(control, running):
                return


def _receive(control: socket.socket, running: dict[int, tuple[int, int]]) -> bool:
    """False where the launcher has closed the socket."""
    space = socket.CMSG_SPACE(_FILES * 4)
    packet, extra, _, _ = control.recvmsg(PACKET_BYTES, space, socket.MSG_CMSG_CLOEXEC)
    files = array.array("i")
    for _, _, sent in extra:
        files.frombytes(sent)
    try:
        if packet:
            request = json.loads(packet)
            _start(request, files, running, lambda code: _answer(control, request["id"], code))
    finally:
        for file in files:
            os.close(file)
    return bool(packet)


def _start(
    request: Request,
    files: Sequence[int],
    running: dict[int, tuple[int, int]],
    refuse: Callable[[int], None],
) -> None:
    """Refuses with 127 where there is no such program or folder, else with 126, and a sentence as output."""
    name, environment = request["argv"][0], request["env"]
    try:
        os.chdir(os.path.join("/", request["cwd"]))  # noqa: PTH118  # a name inside
        if request["needs_folder"]:
            _check_folder(request["cwd"])
        # Programs are searched by the variable of the caller.
        os.environ["PATH"] = environment["PATH"]
        # By vfork: this process's memory is shared until the program begins, and never read, as it is not
        # dumpable.
        process = os.posix_spawnp(
            name,
            request["argv"],
            environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, file, target) for target, file in enumerate(files)],
            setsid=True,
            setsigdef=_DEFAULT_SIGNALS,
        )
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else error
        with suppress(OSError):
            os.write(files[-1], f"{name[:_MAX_NAME_CHARACTERS]}: {problem}\n".encode("utf-8", "replace"))
        refuse(127 if isinstance(error, FileNotFoundError) else 126)
    else:
        running[os.pidfd_open(process)] = process, request["id"]


def _check_folder(name: str) -> None:
    """Raises PermissionError where it is reached by a link, or cannot be read."""
    if os.getcwd() != name or not os.access(".", os.R_OK | os.X_OK):  # noqa: PTH109  # no object is needed
        raise PermissionError(errno.EACCES, "is closed, or a link")


def _answer(control: socket.socket, number: int, code: int) -> None:
    control.send(json.dumps((number, code)).encode())
