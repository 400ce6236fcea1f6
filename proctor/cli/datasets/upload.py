"""How far an upload is, on a terminal: bytes, speed, time left; nothing anywhere else.
A file of this machine becomes a data set, with a display of how far it is.
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from proctor.cli.datasets.tables import print_faults
from proctor.cli.render.documents import document
from proctor.cli.render.terminal import Terminal, say
from proctor.client.datasets import Upload
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import dataset_service_pb2 as dataset_pb2


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


_ID = re.compile(r"(ds_[0-9a-f]{32}|file-[0-9A-Za-z]+)")


@dataclass(frozen=True, slots=True)
class LocalFile:
    """`name` is that of the data set; `is_found_again`: what was uploaded already is not sent once more."""

    path: Path
    name: str
    format: dataset_pb2.DatasetFormat.ValueType = dataset_pb2.DATASET_FORMAT_UNSPECIFIED
    is_found_again: bool = False


async def upload_file(
    client: ProctorClient, file: LocalFile, console: Console
) -> dataset_pb2.UploadDatasetResponse:
    with _opened(file.path) as content:
        size = _size(content)
        with upload_display(console, size) as display:
            sent = Upload(content, file.name, file.format, display.sent, on_read=display.read)
            # A pipe can be read only once.
            if file.is_found_again and size is not None:
                return await client.datasets.upload_once(sent)
            return await client.datasets.upload(sent)


async def dataset_of(client: ProctorClient, named: str, terminal: Terminal) -> str | None:
    """The id that is named, or that of the file which is; None where its faults were told instead."""
    if _ID.fullmatch(named):
        return named
    file = LocalFile(Path(named), Path(named).name, is_found_again=True)
    if not file.path.exists():
        sentence = f"{named} is neither a file nor the id of a data set (see `proctor datasets`)."
        raise Refused(sentence, "INVALID_PARAMETER")
    uploaded = await upload_file(client, file, terminal.err)
    if not uploaded.HasField("dataset"):
        tell_faults(terminal, file.name, uploaded)
        return None
    dataset = uploaded.dataset
    rows = "1 row" if dataset.row_count == 1 else f"{dataset.row_count:,} rows"
    say(terminal.progress, f"{dataset.name} is the data set {dataset.dataset_id}: {rows}.")
    return dataset.dataset_id


def tell_faults(terminal: Terminal, name: str, refused: dataset_pb2.UploadDatasetResponse) -> None:
    if terminal.is_json:
        terminal.emit(document(refused))
    else:
        print_faults(terminal.err, name, refused)


def _opened(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror or error}.", "CANNOT_READ") from error


def _size(content: BinaryIO) -> int | None:
    """None for a pipe."""
    status = os.fstat(content.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None
