"""Who leads by the differences of runs, and the conclusions from a comparison in sentences."""

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


def significance(lead: Lead | None, corrected_over: int) -> str:
    """Significance of the gap between the best run and the next."""
    if lead is None:
        return "undefined: no pair of runs has a figure"
    gap = lead.gap
    if gap.verdict is Verdict.UNDEFINED:
        return f"undefined: {gap.remark or 'the data allow no test'}"
    return _p_value(gap, corrected_over)


def recommendations(
    differences: Sequence[Difference], names: Sequence[str], suite: str, corrected_over: int
) -> list[str]:
    """For each pair: its conclusion, its tasks, and what biases its figures."""
    return [
        sentence
        for overall in differences
        if overall.is_overall
        for sentence in (
            _conclusion(overall, names, suite, corrected_over),
            _by_task(overall, differences, names),
            _biases(overall, names),
        )
        if sentence
    ]


def _conclusion(each: Difference, names: Sequence[str], suite: str, corrected_over: int) -> str:
    first, second = names[each.first], names[each.second]
    on = f"on {suite} ({each.metric})"
    match each.verdict:
        case Verdict.FIRST_BETTER | Verdict.SECOND_BETTER:
            is_first = each.verdict is Verdict.FIRST_BETTER
            better, worse = (first, second) if is_first else (second, first)
            value, interval = each.seen_from(each.first if is_first else each.second)
            shown = f"{better} is better than {worse} {on} by {_sized(value, interval)}"
            return f"{shown}, {_p_value(each, corrected_over)}."
        case Verdict.NOT_SHOWN:
            size = _sized(each.value, each.interval)
            not_shown = f"There is no significant difference between {first} and {second} {on}"
            return f"{not_shown}: the difference is {size}. {_pairs_needed(each)}"
        case Verdict.UNDEFINED:
            return f"{first} and {second} cannot be compared {on}: {each.remark or 'the data allow no test'}."


def _pairs_needed(each: Difference) -> str:
    if each.smallest_detectable is None:
        return "That does not prove them equal."
    shown = f"{each.pairs:,} pairs of answers would have shown a difference of {each.smallest_detectable:.4g}"
    needed = each.pairs_needed()
    if needed is None or needed <= each.pairs:
        return f"That does not prove them equal: {shown} with a power of 80 %."
    more = f"to show one as small as {abs(each.value or 0):.2g}, about {needed:,} would be needed"
    return f"That does not prove them equal: {shown} with a power of 80 %; {more}."


def _by_task(overall: Difference, differences: Sequence[Difference], names: Sequence[str]) -> str:
    pair = (overall.first, overall.second)
    of_pair = [each for each in differences if each.task and (each.first, each.second) == pair]
    parts = []
    for verdict, run in ((Verdict.FIRST_BETTER, pair[0]), (Verdict.SECOND_BETTER, pair[1])):
        tasks = dict.fromkeys(each.task for each in of_pair if each.verdict is verdict)
        if tasks:
            parts.append(f"{names[run]} is better on {', '.join(tasks)}")
    return f"Task by task: {'; '.join(parts)}." if parts else ""


def _biases(each: Difference, names: Sequence[str]) -> str:
    parts = []
    if each.if_parsed is not None and each.value is not None:
        parts.append(
            f"unparsed answers count as wrong, without them the difference is {each.if_parsed:+z.4f} "
            f"instead of {each.value:+z.4f}"
        )
    if each.first_failed or each.second_failed:
        parts.append(
            f"{each.first_failed} samples of the first and {each.second_failed} of the second failed and are "
            "excluded: retry what failed"
        )
    if not parts:
        return ""
    return f"{names[each.first]} against {names[each.second]}: {'; '.join(parts)}."


def _p_value(each: Difference, corrected_over: int) -> str:
    p_value = each.p_value if each.adjusted_p_value is None else each.adjusted_p_value
    if p_value is None:
        return "without a p-value"
    words = "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
    if each.adjusted_p_value is None or corrected_over < 2:
        return f"{words} ({each.test})"
    return f"{words} ({each.test}, Holm-corrected over {corrected_over} tests)"


def _sized(value: float | None, interval: tuple[float, float] | None) -> str:
    if value is None:
        return "undefined"
    return (
        f"{value:z.4f}"
        if interval is None
        else f"{value:z.4f} (95 % interval {interval[0]:z.4f} to {interval[1]:z.4f})"
    )
