"""Tables of figures that fit a terminal of 80 columns: no frames, and narrow gaps on narrow terminals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from google.protobuf.timestamp_pb2 import Timestamp
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

# A UUID as text.
RUN_ID_WIDTH = 36
_WIDE = 100

Cell = str | Text


@dataclass(frozen=True, slots=True)
class Column:
    """Text is folded. `number` is on the right and `whole` on the left; neither is folded."""

    header: str
    kind: Literal["text", "number", "whole"] = "text"
    min_width: int | None = None


def texts(*headers: str) -> tuple[Column, ...]:
    return tuple(Column(header) for header in headers)


def numbers(*headers: str) -> tuple[Column, ...]:
    return tuple(Column(header, "number") for header in headers)


def is_wide(console: Console) -> bool:
    return console.width >= _WIDE


def table(
    console: Console, columns: Sequence[Column], rows: Iterable[Sequence[Cell]] = (), title: str | None = None
) -> Table:
    gap = 1 if is_wide(console) else 0
    made = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, gap, 0, 0),
        pad_edge=False,
    )
    for column in columns:
        made.add_column(
            column.header,
            justify="right" if column.kind == "number" else "left",
            no_wrap=column.kind != "text",
            overflow="fold",
            min_width=column.min_width,
        )
    for row in rows:
        made.add_row(*row)
    return made


def two_lines(first: Cell, second: str, style: str = "dim") -> Text:
    return Text.assemble(first, "\n", (second, style))


def date_and_time(moment: Timestamp) -> Text:
    return two_lines(*f"{moment.ToDatetime():%Y-%m-%d %H:%M:%S}".split())
