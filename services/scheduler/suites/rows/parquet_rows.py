"""Rows of a Parquet file, decoded in a process of its own with limits of memory and time.

A small file can decode to any size, and a hostile one can crash the library. Then only its process ends.
"""

import os
import subprocess
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from services.common.processes.commands import module_command
from services.common.processes.frames import BrokenFrame, read_frame
from services.common.processes.plain_values import UnexpectedValue, from_bytes
from services.scheduler.suites.rows import parquet_process
from services.scheduler.suites.rows.errors import LargeGroup, UnreadableParquet, UnreadableValue
from services.scheduler.suites.rows.parquet_cells import rows_from_bytes
from services.scheduler.suites.rows.parquet_process import COLUMNS, END, ERROR, PART
from services.scheduler.suites.rows.row_source import SourceRow

_ERRORS = {error.__name__: error for error in (UnreadableParquet, LargeGroup, UnreadableValue)}


@dataclass(frozen=True, slots=True)
class UnfitRow:
    """A row that has more than the limit."""

    limit: str


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """`rows` can be read once; it raises `UnreadableParquet`. `count`: as the file says."""

    columns: Sequence[str]
    count: int
    rows: Iterator[SourceRow | UnfitRow]


def open_parquet(content: IO[bytes], cpu_seconds: int) -> ParquetRows:
    """Raises `UnreadableParquet`. The process lives as long as the rows are read or kept."""
    content.flush()
    process = subprocess.Popen(
        module_command(parquet_process.__name__, str(cpu_seconds)),
        stdin=content,
        stdout=subprocess.PIPE,
        env={"PATH": os.defpath, "ARROW_DEFAULT_MEMORY_POOL": "system"},
    )
    frames = _Frames(process)
    return ParquetRows(*frames.columns(), frames.rows())


class _Frames:
    """Output of the process: the columns, parts of rows, then the end or an error.

    A process that decodes a hostile file may send any bytes: they are rows, or the file cannot be read.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        weakref.finalize(self, _end, process)

    def columns(self) -> tuple[Sequence[str], int]:
        """With the number of rows."""
        try:
            return from_bytes(self._next(COLUMNS) or b"", tuple[list[str], int])
        except UnexpectedValue as error:
            raise self._ended_by(_without_rows(error)) from error

    def rows(self) -> Iterator[SourceRow | UnfitRow]:
        try:
            while (part := self._next(PART)) is not None:
                for row in rows_from_bytes(part):
                    yield UnfitRow(row) if isinstance(row, str) else row
        except UnexpectedValue as error:
            raise self._ended_by(_without_rows(error)) from error
        _end(self._process)

    def _next(self, expected: bytes) -> bytes | None:
        """None at the end. Raises `UnexpectedValue`."""
        stream = self._process.stdout
        assert stream is not None
        try:
            frame = read_frame(stream)
        except BrokenFrame:
            frame = None
        if frame is None:
            # As its limits do.
            raise self._ended_by(UnreadableParquet("decoding it takes more memory or time than a file may"))
        kind, content = frame
        if kind == ERROR:
            name, problem = from_bytes(content, tuple[str, str])
            raise self._ended_by(_ERRORS.get(name, UnreadableParquet)(problem))
        if kind not in (expected, END):
            raise UnexpectedValue(f"not a frame of rows: {kind!r}")
        return None if kind == END else content

    def _ended_by(self, problem: UnreadableParquet) -> UnreadableParquet:
        _end(self._process)
        return problem


def _without_rows(error: UnexpectedValue) -> UnreadableParquet:
    return UnreadableParquet(f"the process that decodes it wrote no rows ({error})")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
