"""Where the marks of a chart of figures and their intervals stand, in units of an SVG drawing."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.results.figures.figure import Figure

LEFT, RIGHT, ROW_HEIGHT, TOP, BOTTOM = 260, 720, 26, 12, 28
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
TICKS_WITH_NEGATIVE = (-1.0, -0.5, 0.0, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Bar:
    """A row: its label, its figure as text, where the figure and the ends of its interval stand."""

    label: str
    text: str
    y: float
    x: float
    x_low: float | None
    x_high: float | None


@dataclass(frozen=True, slots=True)
class Tick:
    text: str
    x: float


@dataclass(frozen=True, slots=True)
class IntervalChart:
    width: int
    height: int
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    zero: float


def interval_chart(figures: Sequence[tuple[str, Figure]]) -> IntervalChart | None:
    """Figures between −1 and 1, from top to bottom; None where there is none."""
    if not figures:
        return None
    lowest = min(figure.ci_low if figure.ci_low is not None else figure.mean or 0.0 for _, figure in figures)
    ticks = TICKS if lowest >= 0 else TICKS_WITH_NEGATIVE
    bars = [_bar(row, label, figure, ticks[0]) for row, (label, figure) in enumerate(figures)]
    height = TOP + ROW_HEIGHT * len(bars) + BOTTOM
    marks = tuple(Tick(f"{tick:g}", _x(tick, ticks[0])) for tick in ticks)
    return IntervalChart(RIGHT + 80, height, tuple(bars), marks, _x(0.0, ticks[0]))


def _bar(row: int, label: str, figure: Figure, start: float) -> Bar:
    assert figure.mean is not None
    has_interval = figure.ci_low is not None and figure.ci_high is not None
    return Bar(
        label,
        f"{figure.mean:.3f}",
        TOP + ROW_HEIGHT * (row + 0.5),
        _x(figure.mean, start),
        _x(figure.ci_low, start) if has_interval and figure.ci_low is not None else None,
        _x(figure.ci_high, start) if has_interval and figure.ci_high is not None else None,
    )


def _x(value: float, start: float) -> float:
    share = (min(max(value, start), 1.0) - start) / (1.0 - start)
    return round(LEFT + share * (RIGHT - LEFT), 1)
