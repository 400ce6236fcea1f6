"""Tables as lines: cells by the names of their columns become the value that a JSON line would have."""

from collections.abc import Mapping, Sequence

import orjson

from services.scheduler.datasets.checking.dataset_fault import BrokenFile, LineFault
from services.scheduler.datasets.checking.row_fields import BATCH_FIELDS, PLAIN_FIELDS
from services.scheduler.datasets.checking.value_words import shown

# In a cell of text these are written as JSON.
_NESTED = ("messages", "metadata", "body")


def check_columns(names: Sequence[str]) -> None:
    """Raises `BrokenFile`: every row would have the same fault."""
    known = BATCH_FIELDS | PLAIN_FIELDS
    for name in names:
        if name not in known:
            fields = ", ".join(sorted(known))
            raise BrokenFile(f"The column {shown(name)} is not known; a file may have {fields}.")
    if len(set(names)) < len(names):
        raise BrokenFile("Two columns have the same name. Keep one of them.")


def value_of_cells(cells: Mapping[str, object]) -> object:
    value = dict(cells)
    for name in _NESTED:
        cell = value.get(name)
        if isinstance(cell, str):
            try:
                value[name] = orjson.loads(cell)
            except orjson.JSONDecodeError as error:
                return LineFault(name, f"{name} is not valid JSON: {error.msg}, at letter {error.colno}.")
    return value
