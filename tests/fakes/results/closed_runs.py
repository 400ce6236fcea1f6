"""Closed runs of one benchmark, and what was found between them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from proctor.values.run import RunState
from services.results.comparison.comparison import StoredDifference
from services.results.leaderboard.closed_run import BenchmarkFigure, BenchmarkResult, ClosedRun
from services.results.leaderboard.conditions import EvaluationConditions, conditions_of
from services.results.leaderboard.list_history import ListHistory
from services.results.leaderboard.rank_models import RankModels
from services.results.runs.conditions import EvaluatedRun
from services.results.statistics.figure import Figure
from tests.fakes.results.memory_leaderboard import MemoryDifferences, MemoryLeaderboard
from tests.fakes.results.memory_results import MemoryRows
from tests.fakes.results.recorded_run import new_id, plan_of

BENCHMARK = "letters"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
WHOLE = conditions_of(EvaluatedRun(plan_of([3, 3, 3])))


class NoonClock:
    """It is always noon."""

    def now(self) -> datetime:
        return NOON

    def monotonic(self) -> float:
        return 0.0


def benchmark_figure(mean: float | None, task_count: int = 3) -> BenchmarkFigure:
    return BenchmarkFigure(Figure(mean=mean, n=300), task_count)


@dataclass(frozen=True)
class _Pending:
    """Notes the pairs that a leaderboard misses, and compares none of them."""

    pairs: list[tuple[str, str]]

    def add(self, pairs: Sequence[tuple[str, str]]) -> int:
        self.pairs.extend(pair for pair in pairs if pair not in self.pairs)
        return len(pairs)


@dataclass
class ClosedRuns:
    """Closes runs an hour apart, the last one at noon at the latest."""

    rows: MemoryRows = field(default_factory=MemoryRows)
    differences: MemoryDifferences = field(default_factory=MemoryDifferences)
    pending: list[tuple[str, str]] = field(default_factory=list)

    def add(
        self,
        model: str,
        mean: float | None,
        conditions: EvaluationConditions = WHOLE,
        *,
        state: RunState = RunState.COMPLETED,
        project_id: int = 1,
        metrics: Iterable[str] = ("acc", "score"),
        failing_tasks: tuple[str, ...] = (),
        less_is_better: tuple[str, ...] = (),
    ) -> ClosedRun:
        closed_at = NOON - timedelta(hours=100 - len(self.rows.closed))
        figures = {metric: benchmark_figure(mean) for metric in metrics}
        result = BenchmarkResult(
            conditions,
            figures,
            answered=300,
            failed=2,
            unparsed=30,
            failing_tasks=failing_tasks,
            less_is_better=less_is_better,
        )
        run = ClosedRun(new_id(), BENCHMARK, model, project_id, state, closed_at, result)
        self.rows.closed[run.run_id] = run
        return run

    def compared(
        self, first: ClosedRun, second: ClosedRun, p_value: float | None, metric: str = "acc"
    ) -> None:
        means = [run.result.figures[metric].figure.mean or 0.0 for run in (first, second)]
        self.differences.stored.append(
            StoredDifference(
                first.run_id, second.run_id, metric, means[0] - means[1], None, None, p_value, 300, "test"
            )
        )

    @property
    def rank_models(self) -> RankModels:
        return RankModels(MemoryLeaderboard(self.rows), self.differences, _Pending(self.pending))

    @property
    def list_history(self) -> ListHistory:
        return ListHistory(MemoryLeaderboard(self.rows), NoonClock())
