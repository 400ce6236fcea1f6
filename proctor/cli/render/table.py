"""Tables of figures that fit a terminal of 80 columns: no frames, and less room where there is less."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

RUN_ID_WIDTH = 36
_WIDE = 100


def is_wide(console: Console) -> bool:
    return console.width >= _WIDE


def compact_table(console: Console, title: str | None = None) -> Table:
    gap = 1 if is_wide(console) else 0
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, gap, 0, 0),
        pad_edge=False,
    )


def two_lines(first: str | Text, second: str, style: str = "dim") -> Text:
    return Text.assemble(first, "\n", (second, style))
