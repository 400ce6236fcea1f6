"""`proctor` as a script calls it, forked from a process that has imported it.

This module is also the program that forks.
"""

import asyncio
import json
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from tempfile import TemporaryFile
from typing import Any

from tests.harness.forks.server import NUMBER_BYTES, fork, number_of, serve, start_server


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
    return await asyncio.to_thread(_ask, server(), arguments, environment, seconds)


@cache
def server() -> socket.socket:
    """One per process of tests, or of those that are forked from it. It ends with that process."""
    return start_server(__name__)


def _ask(
    asked: socket.socket, arguments: tuple[str, ...], environment: Mapping[str, str], seconds: float
) -> Finished:
    with ExitStack() as opened:
        out, err = (opened.enter_context(TemporaryFile()) for _ in range(2))
        answers = opened.enter_context(fork(asked, arguments, environment, out.fileno(), err.fileno()))
        answers.settimeout(seconds)
        # Its pid comes first.
        code = [number_of(answers.recv(NUMBER_BYTES)) for _ in range(2)][1]
        for file in (out, err):
            file.seek(0)
        return Finished(code, out.read().decode(), err.read().decode())


if __name__ == "__main__":
    import typer
    from typer import _adapters  # noqa: F401  # Typer would import it, and pydantic, in each fork

    from proctor.cli.__main__ import app, main

    # A command is imported when it is looked up: here, and not in each fork.
    command: Any = typer.main.get_command(app)
    list(command.commands.values())
    serve(socket.socket(fileno=int(sys.argv[-1])))
    main()
