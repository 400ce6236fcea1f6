"""`proctor backup` and `proctor restore`: all that the local stack keeps, as a folder."""

import os
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.options import AsJson
from proctor.cli.program import program_name
from proctor.cli.render.terminal import Terminal, execute
from proctor.cli.stack.extra import needing_stack

if TYPE_CHECKING:
    from proctor.stack.backup import Backup


def backup(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", file_okay=False, help="Folder of backups; a new folder is made in it."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Back up the local stack, running or not: runs, answers, figures, uploads, suites and artifacts.

    It holds no secrets. Runs go on meanwhile.
    """
    terminal = Terminal(as_json)
    with needing_stack(terminal):
        from proctor.stack.backup import back_up  # noqa: PLC0415  # needs the extra `stack`
        from proctor.stack.options import options_from_environment  # noqa: PLC0415  # the same

    async def work() -> None:
        saved = await back_up(options_from_environment(os.environ), folder)
        again = f"`{program_name()} restore {quote(saved.place)}` restores it."
        terminal.report(asdict(saved), f"Backed up to {saved.place}: {_contents(saved)}. {again}")

    execute(terminal, work)


def restore(
    backup: Annotated[
        Path,
        typer.Argument(
            metavar="BACKUP", exists=True, file_okay=False, help="Folder that `proctor backup` made."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Restore a backup into a local stack that is stopped and empty.

    The whole backup is checked first. Runs that were in progress go on when the stack starts.
    """
    terminal = Terminal(as_json)
    with needing_stack(terminal):
        from proctor.stack.backup import restore as restore_stack  # noqa: PLC0415  # needs the extra `stack`
        from proctor.stack.options import options_from_environment  # noqa: PLC0415  # the same

    async def work() -> None:
        restored = await restore_stack(options_from_environment(os.environ), backup)
        then = f"`{program_name()} up` starts the stack."
        sentence = f"Restored as of {restored.taken_at}: {_contents(restored)}. {then}"
        terminal.report(asdict(restored), sentence)

    execute(terminal, work)


def _contents(backup: "Backup") -> str:
    return f"{backup.rows:,} rows, {backup.objects:,} objects ({backup.object_bytes / 1e6:,.1f} MB)"
