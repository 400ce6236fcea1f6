"""Score against cost or time: the models that no other beats on both, drawn at the server."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from proctor.v1 import summary_pb2
from services.gateway.http.presentation import optional
from services.gateway.pages.interval_plot import Scale
from services.gateway.pages.leaderboard.rows import LeaderboardRow

AGAINST = ("cost", "time")
_ANSWERS = 1000
# Beyond this ratio of the largest to the smallest the axis is logarithmic.
_MAX_LINEAR = 20.0
# The part of the drawing that has points, in percent: beside it are the ticks.
_LEFT, _RIGHT, _TOP, _BOTTOM = 10.0, 96.0, 6.0, 88.0


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """A model. `paid`: the cost of 1,000 answers, or the median seconds of one.

    `is_best`: no other model is at least as good on both, and better on one. Positions are percents from the
    left and from the top; `low` and `high` are those of the interval.
    """

    row: LeaderboardRow
    paid: float
    is_best: bool
    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Tick:
    position: float
    value: float


@dataclass(frozen=True, slots=True)
class ParetoView:
    """`points` of listed models, the cheapest or fastest first; `left_out` have no cost or time to show.

    Costs are in `currency`.
    """

    against: str
    currency: str
    points: Sequence[ParetoPoint]
    left_out: Sequence[str]
    score_ticks: Sequence[Tick]
    paid_ticks: Sequence[Tick]

    @property
    def steps(self) -> Sequence[tuple[float, float, float, float]]:
        """The line beyond which no model is: from each best one to the right, then up or down to the next."""
        best = [point for point in self.points if point.is_best]
        corners = [*((point.x, point.y) for point in best), (_RIGHT, best[-1].y)] if best else []
        lines = []
        for (x, y), (to_x, to_y) in pairwise(corners):
            lines += [(x, y, to_x, y), (to_x, y, to_x, to_y)]
        return [line for line in lines if line[:2] != line[2:]]


def pareto_view(
    against: str,
    rows: Sequence[LeaderboardRow],
    summaries: Sequence[summary_pb2.RunSummary],
    *,
    less_is_better: bool = False,
) -> ParetoView:
    """`summaries` are those of the rows' runs, in their order. `less_is_better`: of the figures."""
    currencies = Counter(each.price.currency for each in summaries if each.HasField("cost"))
    [(currency, _)] = currencies.most_common(1) or [("", 0)]
    paid = [_paid(against, summary, currency) for summary in summaries]
    known = [
        (row, price)
        for row, price in zip(rows, paid, strict=True)
        if price is not None and row.figure.mean is not None
    ]
    sign = -1.0 if less_is_better else 1.0
    known.sort(key=lambda each: (each[1], -sign * (each[0].figure.mean or 0.0)))
    kept = {row.job_id for row, _ in known}
    position, ticks = _axis([price for _, price in known])
    scale = Scale.of_figures(row.figure for row, _ in known)
    return ParetoView(
        against=against,
        currency=currency,
        points=_points(known, position, scale, sign),
        left_out=[row.model for row in rows if row.job_id not in kept],
        score_ticks=[Tick(_down(scale, value), value) for value in scale.ticks],
        paid_ticks=ticks,
    )


def _paid(against: str, summary: summary_pb2.RunSummary, currency: str) -> float | None:
    if against == "time":
        times = summary.timing
        return times.total.p50 if times.HasField("total") else None
    cost = optional(summary, "cost")
    asked = summary.answered - summary.reused_answers
    is_comparable = cost is not None and asked > 0 and summary.price.currency == currency
    return _ANSWERS * cost / asked if cost is not None and is_comparable else None


def _points(
    known: Iterable[tuple[LeaderboardRow, float]],
    position: Callable[[float], float],
    scale: Scale,
    sign: float,
) -> list[ParetoPoint]:
    """`known` have the cheapest first, then the best. `sign`: -1 where less is better."""
    points, most, most_at = [], -math.inf, math.inf
    for row, paid in known:
        value = row.figure.mean or 0.0
        # A model that is as good for as much is beaten by none either.
        worth = sign * value
        is_best = worth > most or (worth == most and paid == most_at)
        ends = [value if end is None else end for end in (row.figure.ci_low, row.figure.ci_high)]
        points.append(
            ParetoPoint(
                row=row,
                paid=paid,
                is_best=is_best,
                x=position(paid),
                y=_down(scale, value),
                low=_down(scale, ends[0]),
                high=_down(scale, ends[1]),
            )
        )
        if worth > most:
            most, most_at = worth, paid
    return points


def _down(scale: Scale, value: float) -> float:
    """The position of a score from the top."""
    return round(_BOTTOM - (_BOTTOM - _TOP) * scale.at(value) / 100, 2)


def _axis(paid: Sequence[float]) -> tuple[Callable[[float], float], list[Tick]]:
    """The position of each from the left, and ticks: from zero, or powers of ten."""
    least, most = min(paid, default=0.0), max(paid, default=1.0)
    if least > 0 and most / least > _MAX_LINEAR:
        first, last = math.floor(math.log10(least)), math.ceil(math.log10(most))

        def logarithmic(value: float) -> float:
            return _across((math.log10(value) - first) / (last - first))

        powers = [10.0**power for power in range(first, last + 1)]
        return logarithmic, [Tick(logarithmic(value), value) for value in powers]
    scale = Scale.around([0.0, *paid])
    return (
        lambda value: _across(scale.at(value) / 100),
        [Tick(_across(scale.at(value) / 100), value) for value in scale.ticks],
    )


def _across(share: float) -> float:
    return round(_LEFT + (_RIGHT - _LEFT) * share, 2)
