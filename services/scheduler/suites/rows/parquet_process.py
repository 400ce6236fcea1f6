"""The process that decodes a Parquet file: reads its standard input, writes parts of rows of bounded size.

It has limits of memory and time, and no secrets. `parquet_rows` starts it.
"""

import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from services.common.processes.frames import write_frame
from services.common.processes.limits import limit_resources
from services.scheduler.suites.rows.errors import LargeGroup, UnreadableParquet, UnreadableValue
from services.scheduler.suites.rows.row_source import MAX_ROW_BYTES

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch
    from pyarrow.parquet import ParquetFile

    from services.scheduler.suites.rows.row_source import SourceRow


# Few, since rows of images or long texts have megabytes.
ROWS_AT_ONCE = 256
# Both bound what one reading unpacks: a file of a kilobyte may hold a gigabyte.
MAX_PART_BYTES = 64 * 1024 * 1024
MAX_GROUP_BYTES = 1024 * 1024 * 1024
# Equal values compress to nothing, so a row has a limit of values, and so has a part.
MAX_ROW_VALUES = 1024 * 1024
# Maximum number of values in the lists of a group: all may belong to one row, which is decoded as a whole.
MAX_GROUP_VALUES = 32 * 1024 * 1024
PROCESS_BYTES = 3 * 1024 * 1024 * 1024
# The kind of each frame.
PART = b"P"
_CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class UnfitRow:
    """A row that has more than the limit."""

    limit: str


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
    from pyarrow import compute, types  # noqa: PLC0415  # in the process that decodes only

    kind: Any = array.type
    nested: Any = array
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    if types.is_dictionary(kind) and any(is_text(kind.value_type) for is_text in texts):
        return compute.sum(compute.binary_length(nested.dictionary).take(nested.indices)).as_py() or 0
    return sum(_bytes(inner) for inner in _inner(array)) if types.is_nested(kind) else array.nbytes


def _inner(array: "Array[Any]") -> Iterator["Array[Any]"]:
    from pyarrow import types  # noqa: PLC0415  # in the process that decodes only

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


def _decode(content: IO[bytes], give: Callable[[object], None]) -> None:
    """The work of the process."""
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415  # in the process that decodes only

    try:
        parquet = ParquetFile(content, buffer_size=_CHUNK_BYTES, pre_buffer=False)
        _check_groups(parquet)
        give(list(parquet.schema_arrow.names))
        for batch in parquet.iter_batches(batch_size=ROWS_AT_ONCE, use_threads=False):
            for part in _small_parts(batch):
                give([part] if isinstance(part, UnfitRow) else [_fit(row) for row in part.to_pylist()])
        give(None)
    except UnreadableParquet as problem:
        give(problem)
    except MemoryError:
        give(UnreadableParquet("decoding it takes more memory than a file may"))
    except (ValueError, OSError, RuntimeError) as error:
        give(UnreadableParquet(_reason(error)))
    except (ArithmeticError, LookupError) as error:
        give(UnreadableValue(_reason(error)))


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _check_groups(parquet: "ParquetFile") -> None:
    indexes = range(len(parquet.schema))
    in_lists = [index for index in indexes if parquet.schema.column(index).max_repetition_level]
    for number in range(parquet.num_row_groups):
        group = parquet.metadata.row_group(number)
        if group.total_byte_size > MAX_GROUP_BYTES:
            raise LargeGroup(f"a row group has more than {MAX_GROUP_BYTES // 1024**2} MiB")
        if sum(group.column(index).num_values for index in in_lists) > MAX_GROUP_VALUES:
            raise LargeGroup(f"a row group has more than {MAX_GROUP_VALUES} values in lists")


def _small_parts(batch: "RecordBatch") -> Iterator["RecordBatch | UnfitRow"]:
    """Halves a batch until it is small: repeated long texts and lists compress well."""
    is_long, is_large = value_count(batch) > MAX_ROW_VALUES, value_bytes(batch) > MAX_PART_BYTES
    if not is_long and not is_large:
        yield batch
    elif len(batch) > 1:
        middle = len(batch) // 2
        yield from _small_parts(batch.slice(0, middle))
        yield from _small_parts(batch.slice(middle))
    else:
        values = f"{MAX_ROW_VALUES} values in lists and objects"
        yield UnfitRow(values) if is_long else _LONG_ROW


_LONG_ROW = UnfitRow(f"{MAX_ROW_BYTES // 1024**2} MiB")


def _fit(row: "SourceRow") -> "SourceRow | UnfitRow":
    is_long = any(isinstance(cell, str) and len(cell) > MAX_ROW_BYTES for cell in row.values())
    return _LONG_ROW if is_long else row


def main() -> None:
    """Reads the file at the standard input, and writes frames."""
    limit_resources(address_bytes=PROCESS_BYTES, cpu_seconds=int(sys.argv[1]))
    # Without it, times with nanoseconds would come as values of another library.
    sys.modules["pandas"] = None  # type: ignore[assignment]  # an import of it then fails

    def give(frame: object) -> None:
        write_frame(sys.stdout.buffer, PART, pickle.dumps(frame, protocol=5))

    _decode(sys.stdin.buffer, give)


if __name__ == "__main__":
    main()
