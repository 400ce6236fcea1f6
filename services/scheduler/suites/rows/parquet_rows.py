"""Rows of a Parquet file, decoded in a process of its own with limits of memory and time.

A small file can decode to any size, and a hostile one can crash the library. Then only its process ends.
"""

import io
import os
import pickle
import subprocess
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from services.common.processes.commands import module_command
from services.common.processes.frames import BrokenFrame, read_frame
from services.scheduler.suites.rows import errors, parquet_process
from services.scheduler.suites.rows.errors import UnreadableParquet, UnreadableValue
from services.scheduler.suites.rows.parquet_process import UnfitRow
from services.scheduler.suites.rows.row_source import SourceRow

_KILLED = UnreadableParquet("decoding it takes more memory or time than a file may")


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """`rows` can be read once; it raises `UnreadableParquet`."""

    columns: Sequence[str]
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
    return ParquetRows(frames.next(), _rows(frames))


def _rows(frames: "_Frames") -> Iterator[SourceRow | UnfitRow]:
    while (part := frames.next()) is not None:
        yield from part


class _Frames:
    """Output of the process: the columns, parts of rows, then None or an error."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        weakref.finalize(self, _end, process)

    def next(self) -> Any:
        text = self._read()
        frame = _Values(io.BytesIO(text)).load() if text else _KILLED
        if frame is None or isinstance(frame, UnreadableParquet):
            _end(self._process)
        if isinstance(frame, UnreadableParquet):
            raise frame
        return frame

    def _read(self) -> bytes:
        """Empty if the process was killed, as by its limits."""
        stream = self._process.stdout
        assert stream is not None
        try:
            frame = read_frame(stream)
        except BrokenFrame:
            return b""
        return frame[1] if frame else b""


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


class _Values(pickle.Unpickler):
    """Reads values only: a process that decodes a hostile file may send any bytes."""

    _KNOWN = frozenset(
        [
            *(("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")),
            *(("uuid", name) for name in ("UUID", "SafeUUID")),
            *(("pytz", name) for name in ("_UTC", "_p")),
            ("decimal", "Decimal"),
            ("zoneinfo", "ZoneInfo._unpickle"),
            *((errors.__name__, name) for name in ("UnreadableParquet", "LargeGroup", "UnreadableValue")),
        ]
    )

    def find_class(self, module: str, name: str) -> Any:
        # The process runs that module as its own program.
        if (module, name) == ("__main__", UnfitRow.__name__):
            return UnfitRow
        if (module, name) not in self._KNOWN:
            raise UnreadableValue(f"it is a {module}.{name}")
        return super().find_class(module, name)
