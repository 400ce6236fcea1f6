"""How much a part of a Parquet file holds, known without making one value of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch


def value_count(batch: RecordBatch) -> int:
    """Lists and objects count as well as what they hold."""
    return sum(_count(column) for column in batch.columns)


def value_bytes(batch: RecordBatch) -> int:
    """A text that is there once for many rows counts in each of them."""
    return sum(_bytes(column) for column in batch.columns)


# pyarrow has no types of its own for what an array holds.
def _count(array: Array[Any]) -> int:
    return len(array) + sum(_count(inner) for inner in _inner(array))


def _bytes(array: Array[Any]) -> int:
    from pyarrow import compute, types  # noqa: PLC0415

    kind: Any = array.type
    nested: Any = array
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    if types.is_dictionary(kind) and any(is_text(kind.value_type) for is_text in texts):
        return compute.sum(compute.binary_length(nested.dictionary).take(nested.indices)).as_py() or 0
    return sum(_bytes(inner) for inner in _inner(array)) if types.is_nested(kind) else array.nbytes


def _inner(array: Array[Any]) -> Iterator[Array[Any]]:
    from pyarrow import types  # noqa: PLC0415

    kind: Any = array.type
    nested: Any = array
    if types.is_struct(kind):
        yield from nested.flatten()
    elif types.is_fixed_size_list(kind):
        yield nested.flatten()
    elif types.is_map(kind) or types.is_list(kind) or types.is_large_list(kind):
        # The values are those of the whole array, of which this may be a slice.
        start, end = nested.offsets[0].as_py(), nested.offsets[-1].as_py()
        for values in (nested.keys, nested.items) if types.is_map(kind) else (nested.values,):
            yield values.slice(start, end - start)
