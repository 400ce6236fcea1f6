"""The difference of two runs in one metric, and what follows from all of them about who is ahead.
Differences from their messages: for conclusions, and as they go out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from proctor.v1 import comparison_pb2
from services.gateway.api.comparisons.schemas import DifferenceShown
from services.gateway.http.presentation import verdict_word


class Verdict(StrEnum):
    """What a difference proves."""

    FIRST_BETTER = "first_better"
    SECOND_BETTER = "second_better"
    NOT_SHOWN = "not_shown"
    UNDEFINED = "undefined"


@dataclass(frozen=True, slots=True)
class Difference:
    """First minus second; runs by their places in the comparison. None is undefined."""

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
    def is_over_all(self) -> bool:
        return not self.task

    def seen_from(self, place: int) -> tuple[float | None, tuple[float, float] | None]:
        """Difference and interval with the run at this place first."""
        if place == self.first or self.value is None:
            return self.value, self.interval
        turned = (-self.interval[1], -self.interval[0]) if self.interval else None
        return -self.value, turned

    def pairs_needed(self) -> int | None:
        """Pairs that would show a true difference of the observed size with a power of 80 %.

        What can be detected shrinks with the square root of the pairs. None where nothing tells.
        """
        if not self.value or not self.smallest_detectable:
            return None
        return math.ceil(self.pairs * (self.smallest_detectable / abs(self.value)) ** 2)


@dataclass(frozen=True, slots=True)
class Lead:
    """Who is ahead by the samples shared, who comes next, and who cannot be told apart from the first."""

    best: int
    runner_up: int
    gap: Difference
    tied: tuple[int, ...]


def lead_of(run_count: int, differences: Sequence[Difference]) -> Lead | None:
    """By pairs won, since each pair shares samples of its own; None where no pair has a figure.

    `differences` are those of one metric over all tasks, one per pair.
    """
    defined = [each for each in differences if each.value is not None]
    if not defined:
        return None
    won = [sum(_ahead(each, place) for each in defined) for place in range(run_count)]
    best, runner_up, *_ = sorted(range(run_count), key=lambda place: -won[place])
    between = next((each for each in defined if {each.first, each.second} == {best, runner_up}), None)
    if between is None:
        return None
    tied = [
        each for each in defined if best in (each.first, each.second) and each.verdict is Verdict.NOT_SHOWN
    ]
    return Lead(best, runner_up, between, tuple(each.first + each.second - best for each in tied))


def _ahead(difference: Difference, place: int) -> float:
    """1 for the run that is ahead in this pair, a half for each where there is no difference."""
    if place not in (difference.first, difference.second):
        return 0.0
    value, _ = difference.seen_from(place)
    assert value is not None
    return 0.5 if value == 0 else float(value > 0)


def difference_of(message: comparison_pb2.Difference) -> Difference:
    return Difference(
        first=message.first,
        second=message.second,
        task=message.task,
        metric=message.metric,
        value=message.difference if message.HasField("difference") else None,
        interval=_interval(message),
        p_value=message.p_value if message.HasField("p_value") else None,
        adjusted_p_value=message.adjusted_p_value if message.HasField("adjusted_p_value") else None,
        test=message.test,
        pairs=message.pairs,
        smallest_detectable=message.smallest_detectable if message.HasField("smallest_detectable") else None,
        first_failed=message.first_failed,
        second_failed=message.second_failed,
        if_parsed=message.difference_if_parsed if message.HasField("difference_if_parsed") else None,
        verdict=_verdict(message),
        remark=message.remark,
    )


def difference_shown(message: comparison_pb2.Difference, names: Sequence[str]) -> DifferenceShown:
    each = difference_of(message)
    return DifferenceShown(
        first=names[message.first],
        second=names[message.second],
        task=message.task or None,
        metric=message.metric,
        first_mean=message.first_mean if message.HasField("first_mean") else None,
        second_mean=message.second_mean if message.HasField("second_mean") else None,
        difference=each.value,
        ci95=each.interval,
        p_value=each.p_value,
        adjusted_p_value=each.adjusted_p_value,
        test=message.test,
        pairs=message.pairs,
        clusters=message.clusters,
        smallest_detectable=each.smallest_detectable,
        first_failed=message.first_failed,
        second_failed=message.second_failed,
        first_unparsed=message.first_unparsed,
        second_unparsed=message.second_unparsed,
        difference_if_parsed=each.if_parsed,
        only_first_right=message.only_first_right,
        only_second_right=message.only_second_right,
        verdict=each.verdict,
        remark=message.remark,
    )


def _interval(message: comparison_pb2.Difference) -> tuple[float, float] | None:
    has_interval = message.HasField("ci_low") and message.HasField("ci_high")
    return (message.ci_low, message.ci_high) if has_interval else None


def _verdict(message: comparison_pb2.Difference) -> Verdict:
    is_known = message.verdict != comparison_pb2.VERDICT_UNSPECIFIED
    return Verdict(verdict_word(message.verdict)) if is_known else Verdict.UNDEFINED
