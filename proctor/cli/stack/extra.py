"""Commands whose packages only the extra `stack` brings."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from proctor.cli.render.terminal import Terminal
from proctor.exit_codes import ExitCode


@contextmanager
def needing_stack(terminal: Terminal) -> Iterator[None]:
    """Imports in it that fail become one sentence."""
    try:
        yield
    except ModuleNotFoundError:
        terminal.print_error("The local stack is not installed: pip install 'proctor-eval[stack]'.")
        raise typer.Exit(ExitCode.REFUSED) from None
