"""How far an upload is, on a terminal: bytes, speed, time left; nothing anywhere else."""

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)


class UploadDisplay:
    """Takes the bytes read, where a file is read before, and sent so far."""

    def __init__(self, progress: Progress, size: int | None) -> None:
        self._progress = progress
        self._size = size
        self._task = progress.add_task("uploading", total=size)

    def read(self, count: int) -> None:
        self._progress.update(self._task, description="reading", completed=count)

    def sent(self, count: int) -> None:
        description = "checking" if count == self._size else "uploading"
        self._progress.update(self._task, description=description, completed=count)


@contextlib.contextmanager
def upload_display(console: Console, size: int | None) -> Iterator[UploadDisplay]:
    """`size` is None where the end is not known."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield UploadDisplay(progress, size)
