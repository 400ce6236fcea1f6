"""How far an upload is, on a terminal: bytes, speed, time left; nothing anywhere else."""

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)


@contextlib.contextmanager
def upload_display(console: Console, size: int | None) -> Iterator[Callable[[int], None]]:
    """Takes the bytes sent so far; `size` is None where the end is not known."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("uploading", total=size)

        def show(sent: int) -> None:
            progress.update(task, completed=sent)
            if sent == size:
                progress.update(task, description="checking")

        yield show
