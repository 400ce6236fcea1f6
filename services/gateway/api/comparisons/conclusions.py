"""The leading run of a comparison, and the conclusions from it in sentences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from proctor.values.comparison import Verdict

DEPENDS_ON_UNPARSED = "the verdict depends on unparsed answers"


class DifferenceShown(BaseModel):
    """First minus second. Null means undefined, never zero."""

    first: str
    second: str
    task: str | None = Field(description="Null for the benchmark as a whole")
    metric: str
    first_mean: float | None
    second_mean: float | None
    difference: float | None
    ci95: tuple[float, float] | None
    p_value: float | None = Field(description="Two-sided, before correction")
    adjusted_p_value: float | None = Field(description="Holm")
    test: str
    pairs: int = Field(description="Samples that both runs answered")
    clusters: int
    smallest_detectable: float | None = Field(description="With a power of 80 %")
    noise_floor: float | None = Field(
        description="Rollouts alone move the difference of two such runs of one model by up to this much, in "
        "95 % of repetitions; null where a run has one rollout"
    )
    first_failed: int = Field(description="Failed samples, which are excluded")
    second_failed: int
    first_unparsed: int = Field(description="Unparsed answers among the pairs, which count as wrong")
    second_unparsed: int
    difference_if_parsed: float | None = Field(description="Over pairs parsed in both; null if all were")
    verdict_if_parsed: str | None = Field(description="Over the same pairs; null if all were parsed")
    depends_on_unparsed: bool = Field(
        description="The side of the difference or the verdict is another one over pairs parsed in both"
    )
    only_first_right: int
    only_second_right: int
    verdict: str = Field(description="first_better, second_better, not_shown or undefined")
    remark: str
    less_is_better: bool = Field(description="Of the metric: the run with the lower figure is the better one")

    @property
    def is_overall(self) -> bool:
        return self.task is None

    def seen_from(self, run: str) -> tuple[float | None, tuple[float, float] | None]:
        """Difference and interval with this run as the first."""
        if run == self.first or self.difference is None:
            return self.difference, self.ci95
        return -self.difference, (-self.ci95[1], -self.ci95[0]) if self.ci95 else None

    def advantage_of(self, run: str) -> tuple[float | None, tuple[float, float] | None]:
        """How much better this run is: where less is better, how much lower its figure is."""
        other = self.second if run == self.first else self.first
        return self.seen_from(other if self.less_is_better else run)

    def pairs_needed(self) -> int | None:
        """Pairs needed to detect a true difference of the observed size with a power of 80 %.

        The smallest detectable difference shrinks with the square root of the pairs. None when undefined.
        """
        if not self.difference or not self.smallest_detectable:
            return None
        return math.ceil(self.pairs * (self.smallest_detectable / abs(self.difference)) ** 2)


@dataclass(frozen=True, slots=True)
class Lead:
    """The best run on the shared samples, the next one, the worst, and the runs that tie with the best.

    `spread` is the difference of the best and the worst; None where the two have no figure.
    """

    best: str
    runner_up: str
    gap: DifferenceShown
    worst: str
    spread: DifferenceShown | None
    tied: list[str]


def lead_of(runs: Sequence[str], differences: Sequence[DifferenceShown]) -> Lead | None:
    """Ranks by pairs won, since each pair has its own shared samples. None when no pair has a figure.

    `differences` are those of one metric over all tasks, one per pair.
    """
    defined = [each for each in differences if each.difference is not None]
    if not defined:
        return None
    won = {run: sum(_points(each, run) for each in defined) for run in runs}
    best, runner_up, *others = sorted(runs, key=lambda run: -won[run])
    worst = others[-1] if others else runner_up
    # A pair without a figure is missing, and the two may be such a pair.
    by_pair = {frozenset((each.first, each.second)): each for each in defined}
    between = by_pair.get(frozenset((best, runner_up)))
    if between is None:
        return None
    tied = [
        each.second if each.first == best else each.first
        for each in defined
        if each.verdict == Verdict.NOT_SHOWN and best in (each.first, each.second)
    ]
    return Lead(best, runner_up, between, worst, by_pair.get(frozenset((best, worst))), tied)


def _points(difference: DifferenceShown, run: str) -> float:
    """1 for the better run of a pair, a half for each of two equal ones, 0 for others."""
    if run not in (difference.first, difference.second):
        return 0.0
    value, _ = difference.advantage_of(run)
    assert value is not None
    return 0.5 if value == 0 else float(value > 0)


def significance(lead: Lead | None, corrected_over: int) -> str:
    """Significance of the gap between the best run and the next."""
    if lead is None:
        return "undefined: no pair of runs has a figure"
    gap = lead.gap
    if gap.verdict == Verdict.UNDEFINED:
        return f"undefined: {gap.remark or 'the data allow no test'}"
    depends = f"; {DEPENDS_ON_UNPARSED}" if gap.depends_on_unparsed else ""
    return f"{_p_value(gap, corrected_over)}{depends}"


def recommendations(differences: Sequence[DifferenceShown], benchmark: str, corrected_over: int) -> list[str]:
    """The sentences of each pair: its conclusion, its tasks, and what biases its figures."""
    return [
        sentence
        for overall in differences
        if overall.is_overall
        for sentence in (
            _conclusion(overall, benchmark, corrected_over),
            _by_task(overall, differences),
            _biases(overall),
        )
        if sentence
    ]


def _conclusion(each: DifferenceShown, benchmark: str, corrected_over: int) -> str:
    first, second = each.first, each.second
    on = f"on {benchmark} ({each.metric}{', less is better' if each.less_is_better else ''})"
    match each.verdict:
        case Verdict.FIRST_BETTER | Verdict.SECOND_BETTER:
            is_first = each.verdict == Verdict.FIRST_BETTER
            better, worse = (first, second) if is_first else (second, first)
            shown = f"{better} is better than {worse} {on} by {_sized(*each.advantage_of(better))}"
            return f"{shown}, {_p_value(each, corrected_over)}."
        case Verdict.NOT_SHOWN:
            size = _sized(each.difference, each.ci95)
            not_shown = f"There is no significant difference between {first} and {second} {on}"
            return f"{not_shown}: the difference is {size}. {_pairs_needed(each)}"
        case _:
            return f"{first} and {second} cannot be compared {on}: {each.remark or 'the data allow no test'}."


def _pairs_needed(each: DifferenceShown) -> str:
    if each.smallest_detectable is None:
        return "That does not prove them equal."
    shown = f"{each.pairs:,} pairs of answers would have shown a difference of {each.smallest_detectable:.4g}"
    needed = each.pairs_needed()
    if needed is None or needed <= each.pairs:
        return f"That does not prove them equal: {shown} with a power of 80 %."
    more = f"to show one as small as {abs(each.difference or 0):.2g}, about {needed:,} would be needed"
    return f"That does not prove them equal: {shown} with a power of 80 %; {more}."


def _by_task(overall: DifferenceShown, differences: Sequence[DifferenceShown]) -> str:
    pair = (overall.first, overall.second)
    of_pair = [each for each in differences if each.task and (each.first, each.second) == pair]
    parts = []
    for verdict, run in ((Verdict.FIRST_BETTER, pair[0]), (Verdict.SECOND_BETTER, pair[1])):
        tasks = dict.fromkeys(each.task or "" for each in of_pair if each.verdict == verdict)
        if tasks:
            parts.append(f"{run} is better on {', '.join(tasks)}")
    return f"Task by task: {'; '.join(parts)}." if parts else ""


def _biases(each: DifferenceShown) -> str:
    parts = []
    if each.depends_on_unparsed:
        parts.append(DEPENDS_ON_UNPARSED)
    if each.difference_if_parsed is not None and each.difference is not None:
        parts.append(
            f"unparsed answers count as wrong, without them the difference is "
            f"{each.difference_if_parsed:+z.4f} instead of {each.difference:+z.4f}"
        )
    if each.first_failed or each.second_failed:
        parts.append(
            f"{each.first_failed} samples of the first and {each.second_failed} of the second failed and are "
            "excluded: retry what failed"
        )
    if not parts:
        return ""
    return f"{each.first} against {each.second}: {'; '.join(parts)}."


def _p_value(each: DifferenceShown, corrected_over: int) -> str:
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
