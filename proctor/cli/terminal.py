"""Where a command speaks: figures on stdout, complaints on stderr; with --json one document and no more."""

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from proctor import client_errors
from proctor.cli.exit_codes import ExitCode, code_of_error
from proctor.cli.json_documents import Json
from proctor.cli.verbatim import HarmlessConsole
from proctor.stack.errors import StackError

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
