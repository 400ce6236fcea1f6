"""Tables for notebooks: cells of text, and intervals as plots on one scale."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_WIDTH, _HEIGHT, _MARGIN = 160, 14, 4


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its interval, drawn in its row; what is None is not drawn."""

    figure: float | None
    low: float | None
    high: float | None

    @property
    def ends(self) -> list[float]:
        return [end for end in (self.figure, self.low, self.high) if end is not None]


Cell = str | Interval


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[Cell]], origin: float | None) -> str:
    """Texts of users and models are never markup. A line stands at `origin`, which is on the scale."""
    given = list(rows)
    ends = [end for row in given for cell in row if isinstance(cell, Interval) for end in cell.ends]
    scale = _Scale.around([*ends, *([] if origin is None else [origin])])
    shown = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    lines = "".join(
        f"<tr>{''.join(f'<td>{_cell(cell, scale, origin)}</td>' for cell in row)}</tr>" for row in given
    )
    caption = f"<caption>{html.escape(title)}</caption>"
    return f"<table>{caption}<thead><tr>{shown}</tr></thead><tbody>{lines}</tbody></table>"


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float

    @classmethod
    def around(cls, ends: Sequence[float]) -> "_Scale":
        """Shares have the scale of shares, so that two tables can be held side by side."""
        low, high = min(ends, default=0.0), max(ends, default=1.0)
        if low >= 0 and high <= 1:
            return cls(0.0, 1.0)
        return cls(low, high) if high > low else cls(low - 0.5, high + 0.5)

    def at(self, figure: float) -> float:
        return round(_MARGIN + (_WIDTH - 2 * _MARGIN) * (figure - self.low) / (self.high - self.low), 1)


def _cell(cell: Cell, scale: _Scale, origin: float | None) -> str:
    return html.escape(cell) if isinstance(cell, str) else _plot(cell, scale, origin)


def _plot(interval: Interval, scale: _Scale, origin: float | None) -> str:
    middle = _HEIGHT / 2
    parts = [f'<line x1="{_MARGIN}" x2="{_WIDTH - _MARGIN}" y1="{middle}" y2="{middle}" stroke="#ccc"/>']
    if origin is not None:
        at = scale.at(origin)
        parts.append(f'<line x1="{at}" x2="{at}" y1="0" y2="{_HEIGHT}" stroke="#888"/>')
    if interval.low is not None and interval.high is not None:
        low, high = scale.at(interval.low), scale.at(interval.high)
        parts.append(
            f'<line x1="{low}" x2="{high}" y1="{middle}" y2="{middle}" stroke="#36c" stroke-width="4"/>'
        )
    if interval.figure is not None:
        parts.append(f'<circle cx="{scale.at(interval.figure)}" cy="{middle}" r="3" fill="#124"/>')
    words = f"from {scale.low:.4g} to {scale.high:.4g}"
    return f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{words}">{"".join(parts)}</svg>'
