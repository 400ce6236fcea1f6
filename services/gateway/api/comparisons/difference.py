"""The difference of two runs in one metric, and who leads by all differences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.v1 import comparison_pb2
from proctor.values.comparison import Verdict
from proctor.wire.convert import member_of
from services.gateway.http.presentation import interval, optional


@dataclass(frozen=True, slots=True)
class Difference:
    """First minus second. Runs are indexes into the comparison's list; None means undefined."""

    first: int
    second: int
    task: str
    metric: str
    value: float | None
    interval: tuple[float, float] | None
    p_value: float | None
    adjusted_p_value: float | None
    test: str
    pairs: int
    smallest_detectable: float | None
    first_failed: int
    second_failed: int
    if_parsed: float | None
    verdict: Verdict
    remark: str

    @property
    def is_overall(self) -> bool:
        return not self.task

    def seen_from(self, run: int) -> tuple[float | None, tuple[float, float] | None]:
        """Difference and interval with this run as the first."""
        if run == self.first or self.value is None:
            return self.value, self.interval
        reversed_interval = (-self.interval[1], -self.interval[0]) if self.interval else None
        return -self.value, reversed_interval

    def pairs_needed(self) -> int | None:
        """Pairs needed to detect a true difference of the observed size with a power of 80 %.

        The smallest detectable difference shrinks with the square root of the pairs. None when undefined.
        """
        if not self.value or not self.smallest_detectable:
            return None
        return math.ceil(self.pairs * (self.smallest_detectable / abs(self.value)) ** 2)


@dataclass(frozen=True, slots=True)
class Lead:
    """The best run on the shared samples, the next one, and the runs that tie with the best."""

    best: int
    runner_up: int
    gap: Difference
    tied: tuple[int, ...]


def lead_of(run_count: int, differences: Sequence[Difference]) -> Lead | None:
    """Ranks by pairs won, since each pair has its own shared samples. None when no pair has a figure.

    `differences` are those of one metric over all tasks, one per pair.
    """
    defined = [each for each in differences if each.value is not None]
    if not defined:
        return None
    won = [sum(_points(each, run) for each in defined) for run in range(run_count)]
    best, runner_up, *_ = sorted(range(run_count), key=lambda run: -won[run])
    between = next((each for each in defined if {each.first, each.second} == {best, runner_up}), None)
    if between is None:
        return None
    tied = [
        each for each in defined if best in (each.first, each.second) and each.verdict is Verdict.NOT_SHOWN
    ]
    return Lead(best, runner_up, between, tuple(each.first + each.second - best for each in tied))


def _points(difference: Difference, run: int) -> float:
    """1 for the better run of a pair, a half for each of two equal ones, 0 for others."""
    if run not in (difference.first, difference.second):
        return 0.0
    value, _ = difference.seen_from(run)
    assert value is not None
    return 0.5 if value == 0 else float(value > 0)


def difference_of(message: comparison_pb2.Difference) -> Difference:
    return Difference(
        first=message.first,
        second=message.second,
        task=message.task,
        metric=message.metric,
        value=optional(message, "difference"),
        interval=interval(message),
        p_value=optional(message, "p_value"),
        adjusted_p_value=optional(message, "adjusted_p_value"),
        test=message.test,
        pairs=message.pairs,
        smallest_detectable=optional(message, "smallest_detectable"),
        first_failed=message.first_failed,
        second_failed=message.second_failed,
        if_parsed=optional(message, "difference_if_parsed"),
        verdict=member_of(Verdict, message.verdict) or Verdict.UNDEFINED,
        remark=message.remark,
    )
