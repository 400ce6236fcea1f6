"""A file of rows is read by what its name ends in."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from services.scheduler.suites.rows.csv_file import read_csv
from services.scheduler.suites.rows.file_pin import PinnedFile, pin_file
from services.scheduler.suites.rows.jsonl_file import read_jsonl
from services.scheduler.suites.rows.parquet_file import read_parquet
from services.scheduler.suites.rows.row_source import Row, RowsNotHere

_READERS: Mapping[str, Callable[[PinnedFile], Iterator[Row]]] = {
    ".jsonl": read_jsonl,
    ".csv": read_csv,
    ".parquet": read_parquet,
}


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """`rows` are read once, a few at a time; `revision` is the digest of the file."""

    rows: Iterator[Row]
    revision: str


def open_rows(path: Path) -> OpenedFile:
    """Raises `RowsNotHere` where it is no file of rows, `OSError` where it cannot be read at all."""
    read = _READERS.get(path.suffix)
    if read is None:
        raise RowsNotHere(f"{path.name} is none of the files that are read: {', '.join(_READERS)}")
    pinned = pin_file(path)
    return OpenedFile(read(pinned), f"sha256:{pinned.digest}")
