"""Columns of the list of runs: those that a user chose are in the address, and remembered in a cookie."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

COOKIE = "run_columns"


@dataclass(frozen=True, slots=True)
class Column:
    """`kind` are the classes of its header and cells."""

    key: str
    title: str
    kind: str = ""
    is_default: bool = True


# One per line, in the order of the table.
COLUMNS = (
    Column("benchmark", "Benchmark", "benchmark"),
    Column("state", "State", "progress-cell"),
    Column("score", "Score", "num"),
    Column("differs", "Differs in", "differs"),
    Column("limit", "Limit", "num", is_default=False),
    Column("failed", "Failed", "num"),
    Column("unparsed", "Unparsed", "num"),
    Column("duration", "Took", "num"),
    Column("cost", "Cost", "num"),
    Column("user", "User"),
    Column("created", "Created", "num"),
    Column("project", "Project", is_default=False),
    Column("note", "Note", "noted-cell", is_default=False),
    Column("id", "Id", is_default=False),
)


def chosen_columns(text: str) -> Sequence[Column]:
    """Those whose keys the text separates by points; the default ones where it names none."""
    keys = set(text.split("."))
    return [column for column in COLUMNS if column.key in keys] or [
        column for column in COLUMNS if column.is_default
    ]


def columns_text(columns: Iterable[Column]) -> str:
    """The text that stands for the columns; "" for the default ones."""
    columns = list(columns)
    is_default = columns == [column for column in COLUMNS if column.is_default]
    return "" if is_default else ".".join(column.key for column in columns)
