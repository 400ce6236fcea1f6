"""Exit codes, so that scripts can tell how a command ended.
Where a command speaks: figures on stdout, complaints on stderr; with --json one document and no more.
Commands about runs that exist: `runs`, `runs delete`, `results`, `cancel`, `retry`.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from proctor.cli.render.documents import Json, document
from proctor.cli.render.verbatim import HarmlessConsole
from proctor.client import errors as client_errors
from proctor.stack.errors import StackError
from proctor.v1 import run_pb2


class ExitCode(IntEnum):
    OK = 0
    RUN_FAILED = 1
    SOMETHING_MISSING = 1
    REFUSED = 2
    UNREACHABLE = 3
    NOT_FOUND = 4
    CANCELLED = 5
    FAULT = 6
    STACK_RUNNING = 7
    PORT_TAKEN = 8
    INTERRUPTED = 130


EXIT_CODES_HELP = (
    "Exit codes: 0 done, run completed · 1 run failed, or something is missing (doctor) · "
    "2 wrong usage or refused input · "
    "3 no gateway answers · 4 something named does not exist · 5 run cancelled · "
    "6 a fault inside · 7 a stack is already running · 8 a port is taken · "
    "130 interrupted; the run goes on."
)

_BY_STATE = {
    run_pb2.RUN_STATE_COMPLETED: ExitCode.OK,
    run_pb2.RUN_STATE_FAILED: ExitCode.RUN_FAILED,
    run_pb2.RUN_STATE_CANCELLED: ExitCode.CANCELLED,
}


def code_of_run(run: run_pb2.Run) -> ExitCode:
    """For a final run."""
    return _BY_STATE.get(run.state, ExitCode.FAULT)


def code_of_error(error: client_errors.ClientError) -> ExitCode:
    match error:
        case client_errors.NotFound():
            return ExitCode.NOT_FOUND
        case client_errors.Refused():
            return ExitCode.REFUSED
        case client_errors.Unreachable():
            return ExitCode.UNREACHABLE
    return ExitCode.FAULT


_PLAIN_WIDTH = 120


def _console(*, stderr: bool) -> Console:
    """Text in a pipe is not folded to the 80 columns that rich would guess."""
    stream = sys.stderr if stderr else sys.stdout
    return HarmlessConsole(
        stderr=stderr,
        highlight=False,
        markup=False,
        emoji=False,
        width=None if stream.isatty() else _PLAIN_WIDTH,
    )


def say(console: Console, text: str | Text, style: str = "") -> None:
    """A sentence: folded between words on a terminal, one line anywhere else."""
    console.print(text, style=style, soft_wrap=not console.is_terminal)


@dataclass(frozen=True)
class Terminal:
    is_json: bool
    out: Console = field(default_factory=lambda: _console(stderr=False))
    err: Console = field(default_factory=lambda: _console(stderr=True))

    @property
    def progress(self) -> Console:
        """Stdout belongs to the document where one was asked for."""
        return self.err if self.is_json else self.out

    @property
    def can_ask(self) -> bool:
        return sys.stdin.isatty() and self.progress.is_terminal

    def emit(self, document: Json) -> None:
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        sys.stdout.flush()

    def complain(self, message: str, reason: str = "") -> None:
        say(self.err, message, style="red")
        if self.is_json:
            self.emit({"error": {"reason": reason, "message": message}})


def execute(terminal: Terminal, work: Callable[[], Coroutine[Any, Any, ExitCode]]) -> NoReturn:
    """Runs a command to its exit code; a refusal or an outage is one sentence, never a traceback."""
    try:
        code = asyncio.run(work())
    except client_errors.ClientError as error:
        terminal.complain(_in_words_of_options(error), error.reason)
        code = code_of_error(error)
    except StackError as error:
        terminal.complain(str(error))
        code = ExitCode(error.exit_code)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    raise typer.Exit(int(code))


def _in_words_of_options(error: client_errors.ClientError) -> str:
    """Where to go on in a list is --page in every command."""
    if error.reason != "INVALID_PAGE_TOKEN":
        return error.message
    return error.message.replace("page_token", "--page")


def tell_changed(terminal: Terminal, run: run_pb2.Run, sentence: str) -> ExitCode:
    if terminal.is_json:
        terminal.emit({"run": document(run)})
    else:
        say(terminal.out, sentence)
    return ExitCode.OK
