"""The output of a command: results on stdout, errors on stderr; with --json one document on stdout.

Texts of users and models are shown as they are, without effect on the terminal.
"""

import asyncio
import json
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

import typer
from google.protobuf.message import Message
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from proctor.cli.program import with_program_name
from proctor.cli.render.words import JsonValue, document
from proctor.client import errors
from proctor.exit_codes import ExitCode
from proctor.stack.errors import StackError
from proctor.v1 import run_pb2

# Control characters in a text are shown as signs, so that the terminal does not obey them. Unicode has no
# signs for those beyond ASCII.
_SHOWN_CONTROLS = (
    {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
    | {127: 0x2421}
    | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
)


EXIT_CODES_HELP = f"Exit codes: {' · '.join(f'{code:d} {code.meaning}' for code in ExitCode)}."
# Rich would take 80 columns where it finds no terminal; files hold longer lines.
_PLAIN_WIDTH = 120
_CODE_OF_STATE = {
    run_pb2.RUN_STATE_COMPLETED: ExitCode.OK,
    run_pb2.RUN_STATE_FAILED: ExitCode.FAILED,
    run_pb2.RUN_STATE_CANCELLED: ExitCode.CANCELLED,
}
_CODE_OF_ERROR: Mapping[type[errors.ClientError], ExitCode] = {
    errors.NotFound: ExitCode.NOT_FOUND,
    errors.Refused: ExitCode.REFUSED,
    errors.Unreachable: ExitCode.UNREACHABLE,
}
M = TypeVar("M", bound=Message)


class HarmlessConsole(Console):
    """Prints names and sentences of others without the control characters in them."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            is_plain = segment.control or segment.text.isprintable()
            yield segment if is_plain else Segment(_harmless(segment.text), segment.style)


def write_verbatim(console: Console, text: str) -> None:
    """Bypasses rich, which would fold lines and expand tabs."""
    safe = _harmless(text) if console.is_terminal else text
    console.file.write(f"{safe}\n")


def quoted(text: str) -> str:
    """The text as a JSON string, so that spaces at its ends are visible."""
    return json.dumps(text, ensure_ascii=False)


def _harmless(text: str) -> str:
    return text.translate(_SHOWN_CONTROLS)


def _console(*, stderr: bool) -> Console:
    """Text in a pipe is not folded to the 80 columns that rich would assume."""
    stream = sys.stderr if stderr else sys.stdout
    return HarmlessConsole(
        stderr=stderr,
        highlight=False,
        markup=False,
        emoji=False,
        width=None if stream.isatty() else _PLAIN_WIDTH,
    )


def say(console: Console, text: str | Text, style: str = "") -> None:
    """Prints a sentence: folded between words on a terminal, one line anywhere else."""
    if isinstance(text, str):
        text = with_program_name(text)
    console.print(text, style=style, soft_wrap=not console.is_terminal)


@dataclass(frozen=True, slots=True)
class Terminal:
    is_json: bool
    out: Console = field(default_factory=lambda: _console(stderr=False))
    err: Console = field(default_factory=lambda: _console(stderr=True))

    @property
    def progress(self) -> Console:
        """The console of progress: with --json stdout is for the document alone."""
        return self.err if self.is_json else self.out

    @property
    def can_ask(self) -> bool:
        return sys.stdin.isatty() and self.progress.is_terminal

    def emit(self, shown: JsonValue) -> None:
        sys.stdout.write(json.dumps(shown, indent=2, ensure_ascii=False) + "\n")
        sys.stdout.flush()

    def show(self, message: M, render: Callable[[Console, M], None]) -> None:
        """The message as a document with --json, else as `render` prints it."""
        if self.is_json:
            self.emit(document(message))
        else:
            render(self.out, message)

    def report(self, shown: JsonValue, sentence: str) -> None:
        """A document with --json, else a sentence."""
        if self.is_json:
            self.emit(shown)
        else:
            say(self.out, sentence)

    def print_error(self, message: str, reason: str = "") -> None:
        say(self.err, message, style="red")
        if self.is_json:
            self.emit({"error": {"reason": reason, "message": message}})


def execute(terminal: Terminal, work: Callable[[], Coroutine[Any, Any, ExitCode | None]]) -> NoReturn:
    """Runs a command and exits; None of `work` is OK. An error is printed as one sentence."""
    try:
        code = asyncio.run(work()) or ExitCode.OK
    except (errors.ClientError, StackError) as error:
        code = report_error(terminal, error)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
        # Python's handler would print a traceback while the interpreter waits for threads to end.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise typer.Exit(int(code))


def report_error(terminal: Terminal, error: errors.ClientError | StackError) -> ExitCode:
    if isinstance(error, StackError):
        terminal.print_error(str(error))
        return error.exit_code
    # Every list calls its page token --page.
    is_page = error.reason == "INVALID_PAGE_TOKEN"
    message = error.message.replace("page_token", "--page") if is_page else error.message
    terminal.print_error(message, error.reason)
    return _CODE_OF_ERROR.get(type(error), ExitCode.INTERNAL)


def code_of_run(run: run_pb2.Run) -> ExitCode:
    """The exit code of a run in a final state."""
    return _CODE_OF_STATE.get(run.state, ExitCode.INTERNAL)
