"""Programs that are forked from a process which has imported them: that takes longest of their start.

Each is a process of its own, from its arguments and environment to its exit code. A module that has such a
program is a program itself, whose last argument is the socket that it gets its requests from.
"""

import array
import atexit
import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import Popen

from proctor.stack.supervision.launch import die_with
from tests.harness.processes import END_SECONDS, bound

ROOT = Path(__file__).parents[3]
NUMBER_BYTES = array.array("i").itemsize
_DESCRIPTORS = 3


def start_server(module: str, *arguments: str) -> socket.socket:
    """It ends with this process. Called from the main thread."""
    ours, theirs = socket.socketpair()
    with theirs:
        number = theirs.fileno()
        command = bound(sys.executable, "-u", "-m", module, *arguments, str(number))
        process = Popen(command, cwd=ROOT, pass_fds=(number,))

    def end() -> None:
        ours.close()
        process.wait(END_SECONDS)

    atexit.register(end)
    return ours


def fork(
    server: socket.socket, arguments: Sequence[str], environment: Mapping[str, str], out: int, err: int
) -> socket.socket:
    """Starts the program with exactly this environment. The socket gives its pid, then its exit code.

    Both are numbers of `NUMBER_BYTES`. `out` and `err` are descriptors that it writes to.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(server, [b"-"], [theirs.fileno(), out, err])
    ours.sendall(json.dumps([arguments, dict(environment)]).encode())
    ours.shutdown(socket.SHUT_WR)
    return ours


def number_of(content: bytes) -> int:
    return array.array("i", content)[0]


def serve(server: socket.socket) -> None:
    """Forks until nobody is left who asks; returns in each fork that is to become the program."""
    # Nothing of what is imported is garbage, and looking for some would copy its memory to each fork.
    gc.freeze()
    # Those that wait for programs are not waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    this = os.getpid()
    while (received := socket.recv_fds(server, 1, _DESCRIPTORS))[0]:
        descriptors = received[1]
        if os.fork() == 0:
            server.close()
            # What waits for a program ends with this process, and the program with it.
            die_with(this, signal.SIGKILL)
            return _become_program(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
    sys.exit()


def _become_program(asking: int, out: int, err: int) -> None:
    """Returns in another fork, the program, in a session of its own; sends its pid and its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with socket.socket(fileno=asking) as answer:
        with answer.makefile("rb") as file:
            arguments, environment = json.load(file)
        this = os.getpid()
        if child := os.fork():
            _send(answer, child)
            _send(answer, _exit_code(child, answer))
            os._exit(0)
    os.setsid()
    die_with(this, signal.SIGKILL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(3, max(out, err) + 1)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments


def _exit_code(child: int, answer: socket.socket) -> int:
    """Of a program, which is killed, with its group, once nobody waits for it."""
    ended = select.poll()
    descriptor = os.pidfd_open(child)
    ended.register(descriptor, select.POLLIN)
    # That the other side is closed, is reported without being asked for.
    ended.register(answer, 0)
    if descriptor not in dict(ended.poll()):
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _send(answer: socket.socket, number: int) -> None:
    # A test that has waited too long is told nothing more.
    with suppress(BrokenPipeError):
        answer.sendall(array.array("i", [number]).tobytes())
