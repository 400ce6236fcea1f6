"""Two or more runs of one benchmark, compared: the differences of each pair, corrected together."""

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from proctor.values.comparison import Verdict
from proctor.values.scoring import ScoringMethod
from services.results.comparison.answer_pairs import PairTally
from services.results.runs.conditions import DifferingCondition
from services.results.statistics.paired.difference_estimate import DifferenceEstimate, holm, verdict_of

# In the place of a task: the benchmark as a whole.
BENCHMARK = ""
# Differences of all comparisons together; some 20 MB.
MAX_CACHED = 20_000


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """`score`: the benchmark's own figure of its main metric. `unparsed_rate` None: without answers.

    `is_stopped`: before its end, because it was decided between it and another run.
    """

    run_id: str
    model: str
    scoring_method: ScoringMethod | None
    limit: int | None
    score: float | None
    unparsed_rate: float | None = None
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """First minus second, which are indexes in the list of runs. `less_is_better`: of the metric.

    `if_parsed`: over the pairs that were parsed in both runs; None where all were.
    """

    first: int
    second: int
    task: str
    metric: str
    estimate: DifferenceEstimate
    tally: PairTally = field(default_factory=PairTally)
    if_parsed: DifferenceEstimate | None = None
    adjusted_p_value: float | None = None
    verdict: Verdict = Verdict.UNDEFINED
    verdict_if_parsed: Verdict | None = None
    less_is_better: bool = False

    @property
    def depends_on_unparsed(self) -> bool:
        """Whether another side is ahead, or the verdict is another one, over what was parsed in both runs."""
        if self.if_parsed is None:
            return False
        sides = (self.estimate.difference or 0.0) * (self.if_parsed.difference or 0.0)
        return sides < 0 or self.verdict_if_parsed is not self.verdict

    @property
    def noise_floor(self) -> float | None:
        return self.estimate.noise_floor

    @property
    def light(self) -> "Difference":
        """Without the sums that estimates were made from: they are as large as the runs."""
        if_parsed = self.if_parsed and replace(self.if_parsed, units=None)
        return replace(self, estimate=replace(self.estimate, units=None), if_parsed=if_parsed)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`corrected_over`: how many tests the correction was made over; `conditions`: those that differ."""

    benchmark: str
    runs: Sequence[ComparedRun]
    differences: Sequence[Difference]
    corrected_over: int
    warnings: Sequence[str]
    conditions: Sequence[DifferingCondition] = ()


def corrected(differences: Sequence[Difference]) -> tuple[list[Difference], int]:
    """The differences with corrected p-values, and the number of tests that the correction counts.

    One family: every pair × task × metric and every pair × metric of the benchmark, so that the chance of any
    false finding in the whole comparison stays below 5 %. A comparison of one metric, or of some tasks, has
    fewer tests to correct for. A benchmark of one task has that task's estimate: one test, however often it
    is shown.
    """
    tests = [_test(one, differences) for one in differences]
    adjusted = _adjusted(tests, [one.estimate for one in differences])
    # The same family over what was parsed: other data, not more tests.
    if_parsed = _adjusted(tests, [one.if_parsed or one.estimate for one in differences])
    found = [
        replace(
            one,
            adjusted_p_value=adjusted[test],
            verdict=_verdict(one, one.estimate, adjusted[test]),
            verdict_if_parsed=_verdict(one, one.if_parsed, if_parsed[test]) if one.if_parsed else None,
        )
        for test, one in zip(tests, differences, strict=True)
    ]
    return found, sum(p_value is not None for p_value in adjusted.values())


def _verdict(one: Difference, estimate: DifferenceEstimate, adjusted_p_value: float | None) -> Verdict:
    return verdict_of(estimate, adjusted_p_value, less_is_better=one.less_is_better)


def _adjusted(
    tests: Sequence[Hashable], estimates: Sequence[DifferenceEstimate]
) -> Mapping[Hashable, float | None]:
    p_values = {test: one.p_value for test, one in zip(tests, estimates, strict=True)}
    return dict(zip(p_values, holm(list(p_values.values())), strict=True))


def _test(difference: Difference, differences: Sequence[Difference]) -> Hashable:
    """The key of a test: runs, task and metric; for a benchmark of one task, the key of that task."""
    twins = [one for one in differences if _is_twin(one, difference)] if difference.task == BENCHMARK else []
    named = twins[0] if len(twins) == 1 else difference
    return named.first, named.second, named.task, named.metric


def _is_twin(one: Difference, overall: Difference) -> bool:
    runs = (one.first, one.second) == (overall.first, overall.second)
    return one.task != BENCHMARK and runs and one.estimate == overall.estimate


@dataclass(frozen=True, slots=True)
class StoredDifference:
    """First minus second; the p-value is two-sided and not corrected. Undefined numbers are None."""

    first_run_id: str
    second_run_id: str
    metric: str
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    pairs: int
    test: str

    def reversed(self) -> "StoredDifference":
        """Second minus first."""
        return replace(
            self,
            first_run_id=self.second_run_id,
            second_run_id=self.first_run_id,
            difference=None if self.difference is None else -self.difference,
            ci_low=None if self.ci_high is None else -self.ci_high,
            ci_high=None if self.ci_low is None else -self.ci_low,
        )


@dataclass(frozen=True, slots=True)
class ComparisonKey:
    """The inputs that differences follow from. `runs`: ids and epochs in the order of the comparison."""

    runs: tuple[tuple[str, int], ...]
    metrics: tuple[str, ...]
    tasks: tuple[str, ...]
    is_forced: bool
    metric_by_task: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class DifferenceCache:
    """The comparisons that were read last: reading one again costs nothing. Each replica computes for itself.

    The answers of a frozen run never change, and a retry begins another epoch.
    """

    max_cached: int = MAX_CACHED
    _by_key: OrderedDict[ComparisonKey, Sequence[Difference]] = field(default_factory=OrderedDict)
    _count: int = 0

    def find(self, key: ComparisonKey) -> Sequence[Difference] | None:
        found = self._by_key.get(key)
        if found is not None:
            self._by_key.move_to_end(key)
        return found

    def keep(self, key: ComparisonKey, differences: Sequence[Difference]) -> None:
        """Keeps them as `light` ones."""
        if key in self._by_key or len(differences) > self.max_cached:
            return
        light = [one.light for one in differences]
        self._by_key[key] = light
        self._count += len(light)
        while self._count > self.max_cached:
            _, dropped = self._by_key.popitem(last=False)
            self._count -= len(dropped)
