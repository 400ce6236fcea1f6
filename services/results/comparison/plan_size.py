"""Plans how many rows and rollouts show a difference, from the spread of two stored runs."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proctor.values.comparison import MAX_MARGIN_POINTS
from services.common.checked_fields import invalid_field
from services.results.comparison.compare_runs import CompareQuery, CompareRuns
from services.results.comparison.comparison import Comparison, Difference
from services.results.comparison.gate import from_points
from services.results.statistics.paired.difference_estimate import LEVEL, POWER, DifferenceEstimate
from services.results.statistics.paired.planned_size import PlannedSize, SizeGoal, planned_sizes

DEFAULT_ROLLOUTS = 16
_MAX_ROLLOUTS = 1_024
_RUNS = 2


@dataclass(frozen=True, slots=True)
class SizeQuery:
    """Two runs or models whose spread is taken, and the difference in points that is to be shown."""

    compared: CompareQuery
    difference_points: float
    alpha: float = LEVEL
    power: float = POWER
    max_rollouts: int = DEFAULT_ROLLOUTS


@dataclass(frozen=True, slots=True)
class SizedTask:
    """A task, or the benchmark as a whole. `wanted`: the difference in the unit of the metric."""

    difference: Difference
    wanted: float
    sizes: Sequence[PlannedSize]

    @property
    def sample_std(self) -> float | None:
        """Standard deviation of the difference between samples, without the part of rollouts."""
        one = self.difference.estimate
        if one.noise is None or one.stderr is None:
            return None
        return _of_row(one, math.sqrt(max(0.0, one.stderr**2 - one.noise.stderr**2)))

    @property
    def rollout_std(self) -> float | None:
        """Standard deviation of the difference within a sample, of one rollout each."""
        one = self.difference.estimate
        return None if one.noise is None else _of_row(one, one.noise.of_single)


def _of_row(estimate: DifferenceEstimate, stderr: float) -> float:
    return stderr * math.sqrt(estimate.pairs)


@dataclass(frozen=True, slots=True)
class SizePlan:
    comparison: Comparison
    tasks: Sequence[SizedTask]

    @property
    def warnings(self) -> Sequence[str]:
        known = [task for task in self.tasks if task.sizes]
        if known and all(task.difference.estimate.noise is None for task in known):
            single = "The runs have one rollout, so the spread of rollouts is unknown and none are planned."
            return [single, *self.comparison.warnings]
        return self.comparison.warnings


@dataclass(frozen=True, slots=True)
class PlanSize:
    compare_runs: CompareRuns

    async def plan(self, query: SizeQuery) -> SizePlan:
        """Raises what `CompareRuns` raises, and InvalidParameter."""
        _check(query)
        comparison = await self.compare_runs.compare(query.compared)
        return SizePlan(comparison, list(_sized(comparison.differences, query)))


def _check(query: SizeQuery) -> None:
    """Raises InvalidParameter."""
    for name in ("run_ids", "models"):
        named = getattr(query.compared, name)
        if named and len(named) != _RUNS:
            raise invalid_field(name, f"must be {_RUNS}, not {len(named)}")
    if not 0 < query.difference_points <= MAX_MARGIN_POINTS:
        raise invalid_field("difference_points", f"must be above 0, and at most {MAX_MARGIN_POINTS:g}")
    if not 0 < query.alpha < 0.5:
        raise invalid_field("alpha", "must be above 0 and below 0.5")
    if not 0.5 <= query.power < 1:
        raise invalid_field("power", "must be 0.5 to below 1")
    if not 1 <= query.max_rollouts <= _MAX_ROLLOUTS:
        raise invalid_field("max_rollouts", f"must be 1 to {_MAX_ROLLOUTS:,}")


def _sized(differences: Sequence[Difference], query: SizeQuery) -> Iterator[SizedTask]:
    for one in differences:
        wanted = from_points(one.metric, query.difference_points)
        goal = SizeGoal(wanted, query.alpha, query.power)
        yield SizedTask(one, wanted, list(planned_sizes(one.estimate, goal, query.max_rollouts)))
