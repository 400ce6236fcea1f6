"""Ports of leaderboards and histories."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from proctor.values.run import RunKind, RunState
from proctor.values.scoring import ScoringMethod
from services.results.leaderboard.baseline import TaskBaselines
from services.results.leaderboard.closed_run import BenchmarkBaselines, ClosedRun
from services.results.leaderboard.leaderboard import Candidate
from services.results.leases.lease import Work, WorkKind
from services.results.runs.run_plan import PlannedTask
from services.results.statistics.variance_split import RepetitionSpread

HistoryKey = tuple[datetime, str]


class LeaderboardStore(Protocol):
    """Completed runs by benchmark, metric, model and conditions. The cost does not grow with the runs."""

    async def metrics(self, benchmark: str, project_id: int | None) -> list[str]:
        """Metrics of the completed runs of a benchmark; of one project where one is given."""
        ...

    async def candidates(
        self, benchmark: str, metric: str, project_id: int | None, *, is_best: bool
    ) -> list[Candidate]:
        """The latest (or best) completed run of each model under each of its conditions."""
        ...

    async def newest_run(self, benchmark: str) -> ClosedRun | None:
        """The run of a benchmark that was closed last."""
        ...

    async def closed_run(self, run_id: str) -> ClosedRun | None:
        """A run as it was last closed."""
        ...

    async def spread(
        self, run_ids: Sequence[str], metric: str, project_id: int | None
    ) -> RepetitionSpread | None:
        """How figures of runs that repeat some listed runs scatter; None where none was repeated."""
        ...

    async def baselines(self, run_ids: Sequence[str]) -> BenchmarkBaselines:
        """The baselines of the newest of some runs; empty where none has them yet."""
        ...


@dataclass(frozen=True, slots=True)
class HistoryRange:
    """Closed runs of a benchmark and a model ("" for all) since a moment, newest first, and after a key.

    Without a benchmark those of one kind, where one is given. `state`: that they ended in; None for any.
    """

    benchmark: str
    model: str
    since: datetime
    after: HistoryKey
    page_size: int
    kind: RunKind | None = None
    state: RunState | None = None


@dataclass(frozen=True, slots=True)
class HistoryTotals:
    """The newest 1,001 runs of a history: those that completed, and the answers and failures of all.

    `cost` is that of the `priced_runs`, in the currency of the price file.
    """

    runs: int
    completed_runs: int
    answered: int
    failed: int
    cost: float = 0.0
    priced_runs: int = 0
    currency: str = ""


class HistoryStore(Protocol):
    """Reads histories of closed runs."""

    async def page(self, page: HistoryRange) -> list[ClosedRun]:
        """The runs of a page."""
        ...

    async def runs(self, run_ids: Sequence[str]) -> list[ClosedRun]:
        """Those of some runs that are closed, in any order."""
        ...

    async def count(self, page: HistoryRange) -> int:
        """Runs over all pages, whatever their state, to 1,001. It reads no run."""
        ...

    async def totals(self, page: HistoryRange) -> HistoryTotals:
        """Sums over the newest 1,001 runs of all pages. It reads each of them."""
        ...


class BaselineStore(Protocol):
    """Stores baselines, which need no model: of sample sets, and of the benchmarks of closed runs."""

    async def keep_for_run(self, run_id: str, baselines: BenchmarkBaselines) -> None:
        """Stores the baselines of a run's benchmark by name."""
        ...

    async def find(self, task: PlannedTask, method: ScoringMethod | None) -> TaskBaselines | None:
        """The stored baselines of the task's sample set, scored as this task is."""
        ...

    async def keep(self, task: PlannedTask, method: ScoringMethod | None, baselines: TaskBaselines) -> None:
        """Stores the baselines of a task's sample set; the first ones stay."""
        ...


class PendingComparisons(Protocol):
    """Compares runs whose comparison is not stored, behind those who read."""

    def add(self, pairs: Sequence[tuple[str, str]]) -> int:
        """The number of these pairs of closed runs that are compared soon."""
        ...


class WaitingRuns(Protocol):
    """Completed runs that wait for a work."""

    async def next(self, kind: WorkKind) -> Work | None:
        """The least often started first; None where none waits."""
        ...
