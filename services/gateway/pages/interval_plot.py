"""Intervals on one scale: ticks at round figures, and positions in percent of the width."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from services.gateway.pages.rows.figure import Figure

_SHARE = (0.0, 1.0)
_MAX_TICKS = 7
_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale from `low` to `high`, both ticks; figures between them have positions from 0 to 100 percent."""

    low: float
    high: float
    ticks: Sequence[float]

    @classmethod
    def around(cls, figures: Iterable[float | None], *, within: tuple[float, float] | None = None) -> Self:
        """Around all figures that are there; `within` are bounds that no figure can be beyond."""
        known = [figure for figure in figures if figure is not None and math.isfinite(figure)]
        low, high = (min(known), max(known)) if known else (within or (0.0, 1.0))
        # A scale of equal figures still needs a width.
        if high - low < 1e-9:
            low, high = low - 0.05, high + 0.05
        if within:
            low, high = max(low, within[0]), min(high, within[1])
        step = _step((high - low) / (_MAX_TICKS - 1))
        # Quotients of floats are inexact: a bound that is a tick must not get another tick beyond it.
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        ticks = [round(each * step, 10) for each in range(first, max(last, first + 1) + 1)]
        return cls(ticks[0], ticks[-1], ticks)

    @classmethod
    def of_figures(cls, figures: Iterable[Figure]) -> Self:
        """Around figures and their intervals. Where all are shares, so is the scale."""
        ends = [end for figure in figures for end in figure.ends]
        is_of_shares = all(end is None or 0 <= end <= 1 for end in ends)
        return cls.around(ends, within=_SHARE if is_of_shares else None)

    def at(self, figure: float) -> float:
        """Its position in percent; the nearer end for a figure outside."""
        percent = 100 * (figure - self.low) / (self.high - self.low)
        return round(min(max(percent, 0.0), 100.0), 2)

    def width(self, low: float, high: float) -> float:
        return round(self.at(high) - self.at(low), 2)


def _step(minimum: float) -> float:
    """The next round step."""
    if minimum <= 0:
        return 0.1
    power = 10.0 ** math.floor(math.log10(minimum))
    return next(each * power for each in _STEPS if each * power >= minimum * 0.999)
