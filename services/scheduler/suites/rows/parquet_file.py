"""A Parquet file, a few rows at a time; nested values are lists and dicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from services.scheduler.suites.rows.file_pin import PinnedFile
from services.scheduler.suites.rows.row_source import (
    MAX_ROW_BYTES,
    Row,
    RowsNotHere,
    UnreadableRow,
    check_field_names,
)

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyarrow.parquet import ParquetFile

ROWS_AT_ONCE = 64
MAX_GROUP_BYTES = 1024 * 1024 * 1024
_PIECE_BYTES = 64 * 1024


def read_parquet(file: PinnedFile) -> Iterator[Row]:
    """What is no Parquet file, or one that could only be read whole, is told at once."""
    with file.open() as content:
        try:
            parquet = _opened(content)
        except (ValueError, OSError, RuntimeError) as error:
            reason = " ".join(str(error).split()).rstrip(".")
            raise RowsNotHere(f"{file.path.name} is no readable Parquet file ({reason})") from error
        _check_groups(file, parquet)
        check_field_names(file.path.name, parquet.schema_arrow.names)
    return _rows(file)


def _opened(content: BinaryIO) -> ParquetFile:
    # Takes half a second and 60 MB: only where such a file is read.
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415

    return ParquetFile(content, buffer_size=_PIECE_BYTES, pre_buffer=False)


def _check_groups(file: PinnedFile, parquet: ParquetFile) -> None:
    for number in range(parquet.num_row_groups):
        size = parquet.metadata.row_group(number).total_byte_size
        if size > MAX_GROUP_BYTES:
            raise RowsNotHere(
                f"{file.path.name} has a row group of {size} bytes, more than the {MAX_GROUP_BYTES} allowed"
            )


def _rows(file: PinnedFile) -> Iterator[Row]:
    row = 0
    with file.open() as content:
        batches = _batches(content)
        while (rows := _next_rows(batches, row + 1)) is not None:
            file.require_unchanged(content, row + 1)
            yield from rows
            row += len(rows)


def _batches(content: BinaryIO) -> Iterator[RecordBatch]:
    yield from _opened(content).iter_batches(batch_size=ROWS_AT_ONCE, use_threads=False)


def _next_rows(batches: Iterator[RecordBatch], row: int) -> list[Row] | None:
    try:
        batch = next(batches, None)
        if batch is None:
            return None
        if batch.nbytes > ROWS_AT_ONCE * MAX_ROW_BYTES:
            raise UnreadableRow(row, f"it and those after it have more than {MAX_ROW_BYTES} bytes each")
        rows: list[Row] = batch.to_pylist()
        return rows
    except (ValueError, OSError, RuntimeError) as error:
        raise UnreadableRow(row, f"no valid Parquet: {' '.join(str(error).split())}") from error
