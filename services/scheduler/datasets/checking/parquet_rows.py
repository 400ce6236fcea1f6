"""Rows of a Parquet file, which is read from its end: it lies on disk meanwhile."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from services.scheduler.datasets.checking.dataset_fault import BrokenFile, LineFault
from services.scheduler.datasets.checking.json_cells import check_columns, value_of_cells
from services.scheduler.datasets.checking.row_reader import MAX_ROW_BYTES, NumberedValue

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyarrow.parquet import ParquetFile

ROWS_AT_ONCE = 256
MAX_BATCH_BYTES = 64 * 1024 * 1024
MAX_GROUP_BYTES = 1024 * 1024 * 1024
_PIECE_BYTES = 64 * 1024


def read_parquet(pieces: Iterator[bytes]) -> Iterator[NumberedValue]:
    with tempfile.TemporaryFile(prefix="proctor-parquet-") as spooled:
        for piece in pieces:
            spooled.write(piece)
        if spooled.tell() == 0:
            return
        spooled.seek(0)
        try:
            yield from _rows(spooled)
        except (ValueError, OSError, RuntimeError) as error:
            reason = " ".join(str(error).split()).rstrip(".")
            raise BrokenFile(f"It is no valid Parquet file: {reason}.") from error


def _rows(spooled: IO[bytes]) -> Iterator[NumberedValue]:
    # Takes half a second and 60 MB: only where such a file comes.
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415

    parquet = ParquetFile(spooled, buffer_size=_PIECE_BYTES, pre_buffer=False)
    check_columns(parquet.schema_arrow.names)
    number = 0
    for batch in parquet.iter_batches(batch_size=_rows_at_once(parquet), use_threads=False):
        # Long texts that repeat are packed small.
        for part in _small_parts(batch):
            for cells in part.to_pylist():
                number += 1
                yield number, _value(cells)


def _rows_at_once(parquet: ParquetFile) -> int:
    groups = [parquet.metadata.row_group(number) for number in range(parquet.num_row_groups)]
    if any(group.total_byte_size > MAX_GROUP_BYTES for group in groups):
        raise BrokenFile(f"A row group has more than {MAX_GROUP_BYTES // 1024**2} MiB. Write smaller ones.")
    return ROWS_AT_ONCE


def _small_parts(batch: RecordBatch) -> Iterator[RecordBatch]:
    rows = max(1, len(batch) * MAX_BATCH_BYTES // max(batch.nbytes, MAX_BATCH_BYTES))
    for start in range(0, len(batch), rows):
        yield batch.slice(start, rows)


def _value(cells: dict[str, object]) -> object:
    present = {name: _without_nulls(cell) for name, cell in cells.items() if cell is not None}
    if any(isinstance(cell, str) and len(cell) > MAX_ROW_BYTES for cell in present.values()):
        return LineFault("", f"The row has more than {MAX_ROW_BYTES // 1024**2} MiB. Shorten it.")
    return value_of_cells(present)


def _without_nulls(cell: object) -> object:
    """A column of structs names every field in every row; a map comes as pairs."""
    if isinstance(cell, dict):
        return {name: _without_nulls(value) for name, value in cell.items() if value is not None}
    if isinstance(cell, list):
        if cell and all(isinstance(pair, tuple) and len(pair) == 2 for pair in cell):
            return {str(name): value for name, value in cell}
        return [_without_nulls(value) for value in cell]
    return cell
