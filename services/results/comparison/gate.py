"""Decides from the differences of tasks whether a run is worse than its base by more than a margin."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from proctor.values.comparison import (
    DEFAULT_MARGIN_POINTS,
    GATE_MAX_FAILED_SHARE,
    GATE_MAX_UNPARSED_SHARE,
    GateVerdict,
)
from proctor.values.metrics.metric import Unit
from proctor.values.metrics.names import unit_of
from services.results.comparison.comparison import ComparedRun, Difference
from services.results.runs.conditions import DifferingCondition
from services.results.statistics.paired.difference_estimate import LEVEL, DifferenceEstimate, holm
from services.results.statistics.paired.margin_test import MarginTest, margin_test_of

NO_TEST = "the data allow no test"


@dataclass(frozen=True, slots=True)
class GateRules:
    """`margin_points`: the drop that is accepted, in points as pages show figures.

    `alpha`: the chance that a task passes that is worse by more, and the chance that one fails that is not.
    The shares are of the samples of a task.
    """

    margin_points: float = DEFAULT_MARGIN_POINTS
    alpha: float = LEVEL
    max_failed_share: float = GATE_MAX_FAILED_SHARE
    max_unparsed_share: float = GATE_MAX_UNPARSED_SHARE


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a difference is above −margin (PASS), below it (FAIL), or neither is shown.

    P-values and limits are one-sided and corrected: the lower limit is above −margin where, and only where,
    the verdict is PASS, and the upper one below it where it is FAIL. `detectable`: the distance below −margin
    at which a true difference fails with a power of 80 %. `times_needed`: how many times as many pairs
    pass with that power where there is no difference. All are None without a test.
    """

    verdict: GateVerdict = GateVerdict.INCONCLUSIVE
    p_not_worse: float | None = None
    p_worse: float | None = None
    lower_limit: float | None = None
    upper_limit: float | None = None
    detectable: float | None = None
    times_needed: float | None = None


@dataclass(frozen=True, slots=True)
class GatedTask:
    """A task, or the benchmark as a whole. Run minus base; `margin` is in the unit of the metric.

    `pairs_needed`: to pass in 80 % of repetitions where there is no difference; None where there are enough.
    `reason`: why it is inconclusive.
    """

    difference: Difference
    margin: float
    decision: Decision
    reason: str = ""

    @property
    def pairs_needed(self) -> int | None:
        times = self.decision.times_needed
        return math.ceil(self.difference.estimate.pairs * times) if times and times > 1 else None


@dataclass(frozen=True, slots=True)
class Gate:
    """The first of the `runs` is gated, the second is its base.

    `reasons`: why all of it is inconclusive whatever its tasks say, a sentence each.
    """

    benchmark: str
    runs: Sequence[ComparedRun]
    reasons: Sequence[str]
    conditions: Sequence[DifferingCondition]
    warnings: Sequence[str]
    tasks: Sequence[GatedTask] = ()
    rules: GateRules = field(default_factory=GateRules)

    @property
    def verdict(self) -> GateVerdict:
        """FAIL where a task fails, PASS where all pass."""
        verdicts = {task.decision.verdict for task in self.tasks}
        if self.reasons or not verdicts:
            return GateVerdict.INCONCLUSIVE
        if GateVerdict.FAIL in verdicts:
            return GateVerdict.FAIL
        return GateVerdict.PASS if verdicts == {GateVerdict.PASS} else GateVerdict.INCONCLUSIVE


def gated_tasks(
    differences: Sequence[Difference], samples: Mapping[str, int], rules: GateRules
) -> list[GatedTask]:
    """`samples` of each task, in the run that has more of them."""
    margins = [from_points(one.metric, rules.margin_points) for one in differences]
    widths = [_width(one.metric) for one in differences]
    estimates = [one.estimate for one in differences]
    found = if_parsed = _decisions(estimates, widths, margins, rules.alpha)
    if any(one.if_parsed for one in differences):
        # The same family over what was parsed: other data, not more tests.
        parsed = [one.if_parsed or one.estimate for one in differences]
        if_parsed = _decisions(parsed, widths, margins, rules.alpha)
    gated = zip(differences, margins, found, strict=True)
    return [
        _judged(GatedTask(*one), without_unparsed.verdict, samples[one[0].task], rules)
        for one, without_unparsed in zip(gated, if_parsed, strict=True)
    ]


def _judged(task: GatedTask, if_parsed: GateVerdict, samples: int, rules: GateRules) -> GatedTask:
    """Inconclusive, with the reason, where the pairs are not those of the models alone."""
    reason = _doubt(task.difference, samples, rules)
    if not reason and if_parsed is not task.decision.verdict:
        reason = f"it depends on answers that could not be parsed: without them {if_parsed}"
    if reason:
        decision = replace(task.decision, verdict=GateVerdict.INCONCLUSIVE)
        return replace(task, decision=decision, reason=reason)
    if task.decision.verdict is GateVerdict.INCONCLUSIVE:
        return replace(task, reason=_undecided(task))
    return task


def _doubt(one: Difference, samples: int, rules: GateRules) -> str:
    if one.less_is_better:
        return f"of {one.metric} less is better, and the margin is a drop that is accepted"
    tally, pairs = one.tally, one.estimate.pairs
    failed = max(tally.first_failed, tally.second_failed)
    unparsed = max(tally.first_unparsed, tally.second_unparsed)
    if failed > rules.max_failed_share * samples:
        return f"the machinery failed on {failed:,} of {samples:,} samples; retry what failed"
    if samples - pairs > rules.max_failed_share * samples:
        return f"only {pairs:,} of {samples:,} samples have a figure in both runs"
    if unparsed > rules.max_unparsed_share * samples:
        return f"{unparsed:,} answers to {samples:,} samples could not be parsed"
    return ""


def _undecided(task: GatedTask) -> str:
    if task.decision.p_worse is None:
        return task.difference.estimate.remark or NO_TEST
    pairs = f"{task.difference.estimate.pairs:,} pairs decide nothing at this margin"
    return f"{pairs}; about {task.pairs_needed:,} would" if task.pairs_needed else pairs


def _decisions(
    estimates: Sequence[DifferenceEstimate],
    widths: Sequence[float | None],
    margins: Sequence[float],
    alpha: float,
) -> list[Decision]:
    """Two families of one-sided tests, each corrected by Holm over the tasks."""
    tests = [margin_test_of(*one) for one in zip(estimates, widths, strict=True)]
    bounded = list(zip(tests, margins, strict=True))
    above = [test.p_above(-margin) if test else None for test, margin in bounded]
    below = [test.reversed.p_above(margin) if test else None for test, margin in bounded]
    known = sum(test is not None for test in tests)
    return [
        replace(
            _decision(test, not_worse, worse, alpha, known),
            detectable=test.reversed.decided_distance(margin, alpha / known),
            times_needed=test.times_needed(-margin, alpha / known) if margin else None,
        )
        if test
        else Decision()
        for test, margin, not_worse, worse in zip(
            tests, margins, _corrected(above), _corrected(below), strict=True
        )
    ]


def _corrected(p_values: Sequence[float | None]) -> list["_Tail"]:
    return [_Tail(*both) for both in zip(p_values, holm(p_values), strict=True)]


@dataclass(frozen=True, slots=True)
class _Tail:
    """A one-sided p-value before and after the correction."""

    p_value: float | None
    adjusted: float | None

    def level(self, alpha: float, tests: int) -> float:
        """The level that the correction leaves to this test: p is at most it where the adjusted p is at most
        alpha."""
        return alpha * self.p_value / self.adjusted if self.p_value and self.adjusted else alpha / tests


def _decision(test: MarginTest, not_worse: _Tail, worse: _Tail, alpha: float, tests: int) -> Decision:
    verdict = GateVerdict.INCONCLUSIVE
    if not_worse.adjusted is not None and not_worse.adjusted <= alpha:
        verdict = GateVerdict.PASS
    elif worse.adjusted is not None and worse.adjusted <= alpha:
        verdict = GateVerdict.FAIL
    return Decision(
        verdict,
        not_worse.adjusted,
        worse.adjusted,
        test.lower_limit(not_worse.level(alpha, tests)),
        -test.reversed.lower_limit(worse.level(alpha, tests)),
    )


def from_points(metric: str, points: float) -> float:
    """In the unit of the metric: pages show shares and coefficients times a hundred, others as they are."""
    return points / 100 if _unit(metric).is_of_one else points


def _width(metric: str) -> float | None:
    unit = _unit(metric)
    return None if unit.low is None or unit.high is None else unit.high - unit.low


def _unit(metric: str) -> Unit:
    """The score of a benchmark is a mean of shares mostly."""
    return unit_of(metric) or Unit.SHARE
