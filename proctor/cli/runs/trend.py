"""The trend of a suite over runs in order: their figures, and where the series changes, by paired rows."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

from proctor.client.proctor_client import ProctorClient
from proctor.v1 import comparison_pb2, comparison_service_pb2

LEVEL = 0.05
# Fewer say no more than their comparison.
MIN_RUNS = 3
# Of the latest ones: their pairs are compared, 190 of 20.
MAX_RUNS = 20
# Two groups are compared at a time, with all pairs in them.
_GROUP = 3


@dataclass(frozen=True, slots=True)
class PairDifference:
    """The second run minus the first over the rows of both, and its variance."""

    difference: float
    variance: float


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """Between `at` - 1 and `at`: the mean of the runs from `at` on minus the mean of those before.

    `low` and `high`: the simultaneous 95 % interval over all splits. `p_value` is corrected for them.
    """

    at: int
    difference: float
    low: float
    high: float
    p_value: float

    @property
    def is_shown(self) -> bool:
        return self.p_value <= LEVEL


@dataclass(frozen=True, slots=True)
class Trend:
    """`scores` of the runs in order. `change`: None where the rows of the runs allow no test."""

    metric: str
    run_ids: Sequence[str]
    scores: Sequence[float | None]
    change: ChangePoint | None
    less_is_better: bool = False


def change_point(pairs: Mapping[tuple[int, int], PairDifference], count: int) -> ChangePoint | None:
    """The split of `count` runs in order whose two sides differ most for their standard error.

    The statistic is that of a shift in the mean (Hawkins 1977, "Testing a sequence of observations for a
    shift in location", JASA 72), with the rows as what is drawn: a split is a contrast c of the runs, so its
    variance follows from those of the paired differences, -1/2 sum of c_a c_b Var(x_a - x_b). The maximum
    over the splits is corrected by Bonferroni. `pairs`: by indexes a < b. None without a split that has one.
    """
    splits = [(at, *_split(pairs, count, at)) for at in range(1, count)]
    tested = [(at, difference, math.sqrt(variance)) for at, difference, variance in splits if variance > 0]
    if not tested:
        return None
    at, difference, stderr = max(tested, key=lambda one: abs(one[1]) / one[2])
    normal = NormalDist()
    p_value = min(1.0, (count - 1) * math.erfc(abs(difference) / stderr / math.sqrt(2)))
    half = normal.inv_cdf(1 - LEVEL / (2 * (count - 1))) * stderr
    return ChangePoint(at, difference, difference - half, difference + half, p_value)


def _split(pairs: Mapping[tuple[int, int], PairDifference], count: int, at: int) -> tuple[float, float]:
    """The difference of the means from `at` on and before it, and its variance."""
    weights = [-1 / at] * at + [1 / (count - at)] * (count - at)
    crossing = [pairs[a, b].difference for a, b in combinations(range(count), 2) if a < at <= b]
    variance = -sum(weights[a] * weights[b] * pairs[a, b].variance for a, b in combinations(range(count), 2))
    return sum(crossing) / len(crossing), variance


async def read_trend(client: ProctorClient, run_ids: Sequence[str]) -> Trend:
    """Of closed runs of one suite. Raises what CompareRuns raises."""
    run_ids = run_ids[-MAX_RUNS:]
    numbers = {run_id: number for number, run_id in enumerate(run_ids)}
    pairs: dict[tuple[int, int], PairDifference] = {}
    scores: dict[str, float | None] = {}
    metric, less_is_better = "", False
    for group in _groups(run_ids):
        request = comparison_service_pb2.CompareRunsRequest(run_ids=group)
        compared = (await client.comparisons.CompareRuns(request)).comparison
        for run in compared.runs:
            scores[run.run_id] = run.score if run.HasField("score") else None
        for one in _main_differences(compared):
            ends = [numbers[compared.runs[index].run_id] for index in (one.first, one.second)]
            metric, less_is_better = one.metric, one.less_is_better
            if one.HasField("difference"):
                # They are the first minus the second, and groups keep the order of the runs.
                pairs[ends[0], ends[1]] = PairDifference(-one.difference, one.stderr**2)
    is_whole = len(pairs) == len(run_ids) * (len(run_ids) - 1) // 2
    return Trend(
        metric,
        run_ids,
        [scores.get(run_id) for run_id in run_ids],
        change_point(pairs, len(run_ids)) if is_whole else None,
        less_is_better,
    )


def _groups(run_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Every two runs are together in one of them."""
    parts = [run_ids[first : first + _GROUP] for first in range(0, len(run_ids), _GROUP)]
    if len(parts) == 1:
        yield parts[0]
    for one, other in combinations(parts, 2):
        yield [*one, *other]


def _main_differences(compared: comparison_pb2.Comparison) -> Iterator[comparison_pb2.Difference]:
    """Of each pair that of the benchmark as a whole, else of its one task."""
    for pair in dict.fromkeys((each.first, each.second) for each in compared.differences):
        of_pair = [each for each in compared.differences if (each.first, each.second) == pair]
        yield next((each for each in of_pair if not each.task), of_pair[0])
