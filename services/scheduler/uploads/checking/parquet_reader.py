"""Reads rows of a Parquet file. Its index is at its end, so the file is spooled to disk first."""

import math
import tempfile
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import IO

from services.scheduler.suites.rows.errors import LargeGroup, UnreadableParquet, UnreadableValue
from services.scheduler.suites.rows.parquet_rows import UnfitRow, open_parquet
from services.scheduler.uploads.checking.compression import beginning
from services.scheduler.uploads.checking.text_readers import USUAL_COLUMNS, NumberedValue
from services.scheduler.uploads.errors import BrokenFile, LineFault
from services.scheduler.uploads.ports import Columns

# For files of tens of gigabytes; a file that makes the library hang ends here.
_CPU_SECONDS = 3600
_MARK = b"PAR1"
_MARK_OF_ENCRYPTED = b"PARE"


def read_parquet(chunks: Iterator[bytes], columns: Columns = USUAL_COLUMNS) -> Iterator[NumberedValue]:
    first, rest = beginning(chunks, len(_MARK))
    if not first:
        return
    _check_mark(first)
    with tempfile.TemporaryFile(prefix="proctor-parquet-") as spooled:
        for chunk in chain((first,), rest):
            spooled.write(chunk)
        try:
            yield from _rows(spooled, columns)
        except LargeGroup as error:
            raise BrokenFile(f"A{str(error)[1:]}. Write smaller ones.") from error
        except UnreadableValue as error:
            raise BrokenFile(f"A value cannot be read: {error}. Write it as text.") from error
        except UnreadableParquet as error:
            raise BrokenFile(f"It is not a valid Parquet file: {error}.") from error


def _check_mark(first: bytes) -> None:
    """Called before anything is written to disk."""
    if first.startswith(_MARK_OF_ENCRYPTED):
        raise BrokenFile("The Parquet file is encrypted. Upload it decrypted.")
    if not first.startswith(_MARK):
        raise BrokenFile("It is not a valid Parquet file: it does not begin with PAR1.")


def _rows(spooled: IO[bytes], columns: Columns) -> Iterator[NumberedValue]:
    parquet = open_parquet(spooled, _CPU_SECONDS)
    columns.check(parquet.columns)
    for number, row in enumerate(parquet.rows, start=1):
        if isinstance(row, UnfitRow):
            yield number, LineFault("", f"The row has more than {row.limit}. Shorten it.")
        else:
            yield number, columns.value(_present(row))


def _present(cells: Mapping[str, object]) -> Mapping[str, object]:
    return {name: _without_nothing(cell) for name, cell in cells.items() if not _is_nothing(cell)}


def _is_nothing(cell: object) -> bool:
    """Data frames write NaN for missing numbers."""
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _without_nothing(cell: object) -> object:
    """Drops nulls, since structs have every field in every row; converts maps from pairs to objects."""
    if isinstance(cell, dict):
        return {name: _without_nothing(value) for name, value in cell.items() if not _is_nothing(value)}
    if isinstance(cell, list):
        if cell and all(isinstance(pair, tuple) and len(pair) == 2 for pair in cell):
            return {str(name): value for name, value in cell}
        return [_without_nothing(value) for value in cell]
    return cell
