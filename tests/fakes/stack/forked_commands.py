"""`proctor` as a script calls it, forked from a process that has imported it, which takes longest.

Each command is a process of its own, from its arguments to its exit code. This module is also the program
that forks.
"""

import array
import asyncio
import atexit
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryFile
from typing import Any

from proctor.stack.supervision.launch import die_with
from tests.harness.processes import END_SECONDS, bound

ROOT = Path(__file__).parents[3]
_DESCRIPTORS = 3


@dataclass(frozen=True)
class Finished:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What --json prints: one document and nothing else."""
        return json.loads(self.out)


async def forked(arguments: tuple[str, ...], environment: Mapping[str, str], seconds: float) -> Finished:
    """Calls `proctor` with the arguments, in exactly the environment."""
    return await asyncio.to_thread(_ask, _server(), [arguments, dict(environment)], seconds)


@cache
def _server() -> socket.socket:
    """One per process of tests, with which it ends."""
    ours, theirs = socket.socketpair()
    with theirs:
        number = theirs.fileno()
        process = Popen(bound(sys.executable, "-m", __name__, str(number)), cwd=ROOT, pass_fds=(number,))

    def end() -> None:
        ours.close()
        process.wait(END_SECONDS)

    atexit.register(end)
    return ours


def _ask(server: socket.socket, command: list[Any], seconds: float) -> Finished:
    with ExitStack() as opened:
        out, err = (opened.enter_context(TemporaryFile()) for _ in range(2))
        ours, theirs = (opened.enter_context(end) for end in socket.socketpair())
        socket.send_fds(server, [b"-"], [theirs.fileno(), out.fileno(), err.fileno()])
        theirs.close()
        ours.settimeout(seconds)
        ours.sendall(json.dumps(command).encode())
        ours.shutdown(socket.SHUT_WR)
        code = array.array("i", ours.recv(array.array("i").itemsize))
        for file in (out, err):
            file.seek(0)
        return Finished(code[0], out.read().decode(), err.read().decode())


def _serve(server: socket.socket) -> None:
    """Forks until no test is left; returns in each fork that is to become a command."""
    # Those that wait for commands are not waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while (received := socket.recv_fds(server, 1, _DESCRIPTORS))[0]:
        descriptors = received[1]
        if os.fork() == 0:
            server.close()
            return _become_command(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
    sys.exit()


def _become_command(asking: int, out: int, err: int) -> None:
    """Returns in another fork, the command, and sends its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with socket.socket(fileno=asking) as answer:
        with answer.makefile("rb") as file:
            arguments, environment = json.load(file)
        this = os.getpid()
        if child := os.fork():
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            # A test that has waited too long is told nothing more.
            with suppress(BrokenPipeError):
                answer.sendall(array.array("i", [code]).tobytes())
            os._exit(0)
    die_with(this, signal.SIGKILL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(3, max(out, err) + 1)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments


if __name__ == "__main__":
    import typer
    from pydantic import TypeAdapter  # noqa: F401  # Typer would import it in each fork

    from proctor.cli.__main__ import app, main

    # A command is imported when it is looked up: here, and not in each fork.
    command: Any = typer.main.get_command(app)
    list(command.commands.values())
    _serve(socket.socket(fileno=int(sys.argv[1])))
    main()
