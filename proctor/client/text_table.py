"""Tables of plain text, for a terminal and a log."""

from collections.abc import Iterable, Sequence


def text_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join([title, *(line.rstrip() for line in table)])


def shown(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4g}"
