"""Reads rows of a Parquet file. Its index is at its end, so the file is spooled to disk first."""

import math
import tempfile
from collections.abc import Iterator
from itertools import chain
from typing import IO, TYPE_CHECKING, Any

from services.scheduler.uploads.checking.compression import beginning
from services.scheduler.uploads.checking.faults import BrokenFile, LineFault
from services.scheduler.uploads.checking.text_readers import (
    MAX_ROW_BYTES,
    NumberedValue,
    check_columns,
    value_of_cells,
)
from services.scheduler.uploads.turn import pass_turn

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch
    from pyarrow.parquet import ParquetFile


def value_count(batch: "RecordBatch") -> int:
    """Number of values; lists and objects count too. Creates no values."""
    return sum(_count(column) for column in batch.columns)


def value_bytes(batch: "RecordBatch") -> int:
    """Size of the values; a dictionary-encoded text counts in each row. Creates no values."""
    return sum(_bytes(column) for column in batch.columns)


# pyarrow has no types of its own for what an array holds.
def _count(array: "Array[Any]") -> int:
    return len(array) + sum(_count(inner) for inner in _inner(array))


def _bytes(array: "Array[Any]") -> int:
    from pyarrow import compute, types  # noqa: PLC0415

    kind: Any = array.type
    nested: Any = array
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    if types.is_dictionary(kind) and any(is_text(kind.value_type) for is_text in texts):
        return compute.sum(compute.binary_length(nested.dictionary).take(nested.indices)).as_py() or 0
    return sum(_bytes(inner) for inner in _inner(array)) if types.is_nested(kind) else array.nbytes


def _inner(array: "Array[Any]") -> Iterator["Array[Any]"]:
    from pyarrow import types  # noqa: PLC0415

    kind: Any = array.type
    nested: Any = array
    if types.is_struct(kind):
        yield from nested.flatten()
    elif types.is_fixed_size_list(kind):
        yield nested.flatten()
    elif types.is_map(kind) or types.is_list(kind) or types.is_large_list(kind):
        # The array may be a slice, but its values are those of the whole.
        start, end = nested.offsets[0].as_py(), nested.offsets[-1].as_py()
        for values in (nested.keys, nested.items) if types.is_map(kind) else (nested.values,):
            yield values.slice(start, end - start)


ROWS_AT_ONCE = 256
MAX_BATCH_BYTES = 64 * 1024 * 1024
MAX_GROUP_BYTES = 1024 * 1024 * 1024
# Equal values compress to nothing, so a row has a limit of values, and so has a batch of objects.
MAX_ROW_VALUES = 1024 * 1024
# Of values in lists: all may belong to one row, and a row is decoded as a whole.
MAX_GROUP_VALUES = 32 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024
_MARK = b"PAR1"
_MARK_OF_ENCRYPTED = b"PARE"


def read_parquet(chunks: Iterator[bytes]) -> Iterator[NumberedValue]:
    first, rest = beginning(chunks, len(_MARK))
    if not first:
        return
    _check_mark(first)
    with tempfile.TemporaryFile(prefix="proctor-parquet-") as spooled:
        for chunk in chain((first,), rest):
            spooled.write(chunk)
        spooled.seek(0)
        try:
            yield from _rows(spooled)
        except (ValueError, OSError, RuntimeError) as error:
            raise BrokenFile(f"It is no valid Parquet file: {_reason(error)}.") from error
        except (ArithmeticError, LookupError) as error:
            # Dates, times and time zones that Python does not support.
            raise BrokenFile(f"A value cannot be read: {_reason(error)}. Write it as text.") from error


def _check_mark(first: bytes) -> None:
    """Called before anything is written to disk."""
    if first.startswith(_MARK_OF_ENCRYPTED):
        raise BrokenFile("The Parquet file is encrypted. Upload it decrypted.")
    if not first.startswith(_MARK):
        raise BrokenFile("It is no valid Parquet file: it does not begin with PAR1.")


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _rows(spooled: IO[bytes]) -> Iterator[NumberedValue]:
    # Importing takes half a second and 60 MB: only if needed.
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415

    parquet = ParquetFile(spooled, buffer_size=_CHUNK_BYTES, pre_buffer=False)
    check_columns(parquet.schema_arrow.names)
    _check_groups(parquet)
    number = 0
    for batch in parquet.iter_batches(batch_size=ROWS_AT_ONCE, use_threads=False):
        for part in _small_parts(batch):
            if isinstance(part, LineFault):
                number += 1
                yield number, part
                continue
            pass_turn()
            for cells in part.to_pylist():
                number += 1
                yield number, _value(cells)


def _check_groups(parquet: "ParquetFile") -> None:
    indexes = range(len(parquet.schema))
    in_lists = [index for index in indexes if parquet.schema.column(index).max_repetition_level]
    for number in range(parquet.num_row_groups):
        group = parquet.metadata.row_group(number)
        if group.total_byte_size > MAX_GROUP_BYTES:
            raise BrokenFile(
                f"A row group has more than {MAX_GROUP_BYTES // 1024**2} MiB. Write smaller ones."
            )
        if sum(group.column(index).num_values for index in in_lists) > MAX_GROUP_VALUES:
            raise BrokenFile(
                f"A row group has more than {MAX_GROUP_VALUES} values in lists. Write smaller ones."
            )


def _small_parts(batch: "RecordBatch") -> Iterator["RecordBatch | LineFault"]:
    """Halves a batch until it is small: repeated long texts and lists compress well."""
    is_long, is_large = value_count(batch) > MAX_ROW_VALUES, value_bytes(batch) > MAX_BATCH_BYTES
    if not is_long and not is_large:
        yield batch
    elif len(batch) > 1:
        middle = len(batch) // 2
        yield from _small_parts(batch.slice(0, middle))
        yield from _small_parts(batch.slice(middle))
    elif is_long:
        yield LineFault(
            "", f"The row has more than {MAX_ROW_VALUES} values in lists and objects. Shorten it."
        )
    else:
        yield _too_large()


def _too_large() -> LineFault:
    return LineFault("", f"The row has more than {MAX_ROW_BYTES // 1024**2} MiB. Shorten it.")


def _value(cells: dict[str, object]) -> object:
    present = {name: _without_nothing(cell) for name, cell in cells.items() if not _is_nothing(cell)}
    if any(isinstance(cell, str) and len(cell) > MAX_ROW_BYTES for cell in present.values()):
        return _too_large()
    return value_of_cells(present)


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
