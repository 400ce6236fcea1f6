"""The process that decodes a Parquet file: reads its standard input, writes parts of rows of bounded size.

It has limits of memory and time, and no secrets. `parquet_rows` starts it.
"""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.abc import MetaPathFinder
from typing import IO, TYPE_CHECKING, Any

from services.common.processes.frames import write_frame
from services.common.processes.limits import limit_resources
from services.common.processes.plain_values import to_bytes
from services.scheduler.suites.rows.errors import LargeGroup, UnreadableParquet, UnreadableValue
from services.scheduler.suites.rows.parquet_cells import rows_to_bytes
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
# Repeated values compress to almost nothing, so both rows and parts limit the number of values.
MAX_ROW_VALUES = 1024 * 1024
# Maximum number of values in the lists of a group: all may belong to one row, which is decoded as a whole.
MAX_GROUP_VALUES = 32 * 1024 * 1024
PROCESS_BYTES = 3 * 1024 * 1024 * 1024
# Names of the columns with the number of rows, parts of rows, then the end or an error.
COLUMNS, PART, END, ERROR = b"C", b"P", b"E", b"X"
_CHUNK_BYTES = 64 * 1024


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


def _decode(content: IO[bytes], give: Callable[..., None]) -> None:
    """The work of the process."""
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415  # in the process that decodes only

    try:
        parquet = ParquetFile(content, buffer_size=_CHUNK_BYTES, pre_buffer=False)
        _check_groups(parquet)
        give(COLUMNS, to_bytes((list(parquet.schema_arrow.names), parquet.metadata.num_rows)))
        for batch in parquet.iter_batches(batch_size=ROWS_AT_ONCE, use_threads=False):
            for part in _small_parts(batch):
                rows = [part] if isinstance(part, str) else [_fit(row) for row in part.to_pylist()]
                give(PART, rows_to_bytes(rows))
        give(END)
    except UnreadableParquet as problem:
        give(ERROR, _error(problem))
    except MemoryError:
        give(ERROR, _error(UnreadableParquet("decoding it takes more memory than a file may")))
    except (ValueError, OSError, RuntimeError) as error:
        give(ERROR, _error(UnreadableParquet(_reason(error))))
    except (ArithmeticError, LookupError) as error:
        give(ERROR, _error(UnreadableValue(_reason(error))))


def _error(problem: UnreadableParquet) -> bytes:
    return to_bytes((type(problem).__name__, str(problem)))


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


def _small_parts(batch: "RecordBatch") -> Iterator["RecordBatch | str"]:
    """Halves a batch until it is small: repeated long texts and lists compress well.

    Gives a limit in the place of a row that has more.
    """
    is_long, is_large = value_count(batch) > MAX_ROW_VALUES, value_bytes(batch) > MAX_PART_BYTES
    if not is_long and not is_large:
        yield batch
    elif len(batch) > 1:
        middle = len(batch) // 2
        yield from _small_parts(batch.slice(0, middle))
        yield from _small_parts(batch.slice(middle))
    else:
        yield f"{MAX_ROW_VALUES} values in lists and objects" if is_long else _MAX_BYTES


_MAX_BYTES = f"{MAX_ROW_BYTES // 1024**2} MiB"


def _fit(row: "SourceRow") -> "SourceRow | str":
    is_long = any(isinstance(cell, str) and len(cell) > MAX_ROW_BYTES for cell in row.values())
    return _MAX_BYTES if is_long else row


class _Without(MetaPathFinder):
    """Keeps libraries away by which times with nanoseconds and zones would come as values of theirs.

    None in `sys.modules` would be taken for the library by what is compiled.
    """

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname in {"pandas", "pytz"}:
            raise ModuleNotFoundError(fullname)


def main() -> None:
    """Reads the file at the standard input, and writes frames."""
    limit_resources(address_bytes=PROCESS_BYTES, cpu_seconds=int(sys.argv[1]))
    sys.meta_path.insert(0, _Without())
    _decode(sys.stdin.buffer, partial(write_frame, sys.stdout.buffer))


if __name__ == "__main__":
    main()
