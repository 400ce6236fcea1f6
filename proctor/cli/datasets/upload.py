"""Uploads a local file as a data set, with a progress bar."""

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rich import progress
from rich.console import Console

from proctor.cli.render.table import numbers, table, texts
from proctor.cli.render.terminal import Terminal, say
from proctor.cli.render.words import counted, document
from proctor.client.datasets import Upload
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.values.uploads.column_mapping import ColumnMapping

_ID = re.compile(r"(ds_[0-9a-f]{32}|file-[0-9A-Za-z]+)")


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file and the `name` of its data set. With `is_reused` a file uploaded before is not sent again."""

    path: Path
    name: str
    format: dataset_pb2.DatasetFormat.ValueType = dataset_pb2.DATASET_FORMAT_UNSPECIFIED
    is_reused: bool = False
    project_id: int = 0
    mapping: ColumnMapping | None = None


async def upload_file(
    client: ProctorClient, file: LocalFile, console: Console
) -> dataset_pb2.UploadDatasetResponse:
    with _opened(file.path) as content:
        size = _size(content)
        with _upload_bar(console, size) as bar:
            upload = Upload(
                content,
                file.name,
                file.format,
                bar.on_sent,
                bar.on_read,
                project_id=file.project_id,
                mapping=file.mapping,
            )
            # A pipe can be read only once.
            if file.is_reused and size is not None:
                return await client.upload_dataset_once(upload)
            return await client.upload_dataset(upload)


async def dataset_id_of(client: ProctorClient, named: str, terminal: Terminal, project_id: int) -> str | None:
    """`named` if it is an id, else the id of the file, uploaded now; None after its faults are printed."""
    if _ID.fullmatch(named):
        return named
    file = LocalFile(Path(named), Path(named).name, is_reused=True, project_id=project_id)
    if not file.path.exists():
        raise Refused(f"{named} is neither a file nor the id of a data set (see `proctor datasets`).")
    uploaded = await upload_file(client, file, terminal.err)
    if not uploaded.HasField("dataset"):
        report_faults(terminal, file.name, uploaded)
        return None
    dataset = uploaded.dataset
    rows = counted(dataset.row_count, "row")
    say(terminal.progress, f"{dataset.name} is the data set {dataset.dataset_id}: {rows}.")
    return dataset.dataset_id


def report_faults(terminal: Terminal, name: str, refused: dataset_pb2.UploadDatasetResponse) -> None:
    if terminal.is_json:
        terminal.emit(document(refused))
    else:
        print_faults(terminal.err, name, refused)


class _UploadBar:
    """Receives the bytes read for the digest, and then the bytes sent."""

    def __init__(self, bar: progress.Progress, size: int | None) -> None:
        self._bar = bar
        self._size = size
        self._task = bar.add_task("uploading", total=size)

    def on_read(self, count: int) -> None:
        self._bar.update(self._task, description="reading", completed=count)

    def on_sent(self, count: int) -> None:
        description = "checking" if count == self._size else "uploading"
        self._bar.update(self._task, description=description, completed=count)


@contextlib.contextmanager
def _upload_bar(console: Console, size: int | None) -> Iterator[_UploadBar]:
    """`size` is None for a pipe. Nothing is shown unless the console is a terminal."""
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
    )
    is_hidden = not console.is_terminal
    with progress.Progress(*columns, console=console, transient=True, disable=is_hidden) as bar:
        yield _UploadBar(bar, size)


def _opened(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror or error}.", "CANNOT_READ") from error


def _size(content: BinaryIO) -> int | None:
    """None for a pipe."""
    status = os.fstat(content.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def print_faults(console: Console, name: str, refused: dataset_pb2.UploadDatasetResponse) -> None:
    shown, count = len(refused.faults), refused.fault_count
    these = f", of which these are the first {shown}" if shown < count else ""
    sentence = f"{name} is refused and nothing of it is stored: {counted(count, 'fault')}{these}."
    say(console, sentence, style="red")
    rows = ((str(fault.line or ""), fault.field, fault.problem) for fault in refused.faults)
    console.print(table(console, (*numbers("line"), *texts("field", "problem")), rows))
