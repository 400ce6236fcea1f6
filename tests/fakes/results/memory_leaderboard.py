"""Leaderboards, histories and stored differences in memory: the same promises as Postgres, without it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import combinations
from statistics import variance
from typing import TypeVar

from proctor.values.plain import MAX_COUNTED
from proctor.values.run import RunKind, RunState
from proctor.values.scoring import ScoringMethod
from services.common.errors import TookTooLong
from services.results.comparison.comparison import StoredDifference
from services.results.leaderboard.baseline import TaskBaselines
from services.results.leaderboard.closed_run import BenchmarkBaselines, ClosedRun
from services.results.leaderboard.leaderboard import Candidate
from services.results.leaderboard.ports import HistoryRange, HistoryTotals
from services.results.leases.lease import Work, WorkKind
from services.results.runs.run_plan import PlannedTask
from services.results.statistics.variance_split import RepetitionSpread
from tests.fakes.results.memory_leases import MemoryLeases
from tests.fakes.results.memory_results import MemoryRows

T = TypeVar("T")


class MemoryLeaderboard:
    def __init__(self, rows: MemoryRows) -> None:
        self._rows = rows

    async def metrics(self, benchmark: str, project_id: int | None) -> list[str]:
        runs = self._complete(benchmark, project_id)
        return sorted({metric for run in runs for metric in run.result.figures})

    async def spread(
        self, run_ids: Sequence[str], metric: str, project_id: int | None
    ) -> RepetitionSpread | None:
        groups: dict[tuple[str, str], list[float]] = {}
        complete = self._complete(self._rows.closed[run_ids[0]].benchmark, project_id)
        for run in complete:
            mean = run.result.mean(metric)
            if mean is not None:
                groups.setdefault(_conditions(run, metric), []).append(mean)
        listed = [run for run in complete if run.run_id in run_ids]
        repeated = [found for run in listed if len(found := groups[_conditions(run, metric)]) > 1]
        if not repeated:
            return None
        runs = sum(map(len, repeated))
        squares = sum(variance(means) * (len(means) - 1) for means in repeated)
        return RepetitionSpread(runs, len(repeated), squares / (runs - len(repeated)))

    async def candidates(
        self, benchmark: str, metric: str, project_id: int | None, *, is_best: bool
    ) -> list[Candidate]:
        by_conditions: dict[tuple[str, str], list[ClosedRun]] = {}
        for run in self._complete(benchmark, project_id):
            if metric in run.result.figures:
                by_conditions.setdefault(_conditions(run, metric), []).append(run)
        return [
            self._candidate(
                runs, metric, max(runs, key=lambda run: _worth(run, metric)) if is_best else runs[-1]
            )
            for runs in by_conditions.values()
        ]

    def _candidate(self, runs: Sequence[ClosedRun], metric: str, chosen: ClosedRun) -> Candidate:
        before = [
            run.run_id
            for run in self._complete(chosen.benchmark, None)
            if _conditions(run, metric) == _conditions(chosen, metric)
            and metric in run.result.figures
            and _key(run) < _key(chosen)
        ]
        return Candidate(chosen, metric, before[-1] if before else "", chosen is runs[-1], len(runs))

    async def newest_run(self, benchmark: str) -> ClosedRun | None:
        runs = self._complete(benchmark, None)
        return runs[-1] if runs else None

    async def closed_run(self, run_id: str) -> ClosedRun | None:
        return self._rows.closed.get(run_id)

    async def baselines(self, run_ids: Sequence[str]) -> BenchmarkBaselines:
        known = [self._rows.closed[run_id] for run_id in run_ids if run_id in self._rows.run_baselines]
        newest = max(known, key=_key, default=None)
        return self._rows.run_baselines[newest.run_id] if newest else {}

    async def page(self, page: HistoryRange) -> list[ClosedRun]:
        runs = sorted(self._listed(page), key=_key, reverse=True)
        return [run for run in runs if _key(run) < page.after][: page.page_size]

    async def runs(self, run_ids: Sequence[str]) -> list[ClosedRun]:
        return [self._rows.closed[run_id] for run_id in dict.fromkeys(run_ids) if run_id in self._rows.closed]

    async def count(self, page: HistoryRange) -> int:
        return min(len(self._listed(page)), MAX_COUNTED + 1)

    async def totals(self, page: HistoryRange) -> HistoryTotals:
        runs = sorted(self._listed(page), key=_key, reverse=True)[: MAX_COUNTED + 1]
        priced = [run.result for run in runs if run.result.cost is not None]
        return HistoryTotals(
            runs=len(runs),
            completed_runs=sum(run.state is RunState.COMPLETED for run in runs),
            answered=sum(run.result.answered for run in runs),
            failed=sum(run.result.failed for run in runs),
            cost=sum(filter(None, (result.cost for result in priced))),
            priced_runs=len(priced),
            currency=max((result.currency for result in priced), default=""),
        )

    def _listed(self, page: HistoryRange) -> list[ClosedRun]:
        return [
            run
            for run in self._rows.closed.values()
            if not run.result.asks_no_model
            and page.benchmark in ("", run.benchmark)
            and (page.benchmark or page.kind in (None, _kind(run)))
            and page.model in ("", run.model)
            and run.closed_at >= page.since
            and page.state in (None, run.state)
        ]

    def _complete(self, benchmark: str, project_id: int | None) -> list[ClosedRun]:
        """In the order in which they were closed."""
        complete = [
            run
            for run in self._rows.closed.values()
            if run.benchmark == benchmark
            and not run.result.asks_no_model
            and run.state is RunState.COMPLETED
            and project_id in (None, run.project_id)
        ]
        return sorted(complete, key=_key)


class MemoryBaselines:
    def __init__(self, rows: MemoryRows) -> None:
        self._rows = rows

    async def keep_for_run(self, run_id: str, baselines: BenchmarkBaselines) -> None:
        self._rows.run_baselines[run_id] = baselines

    async def find(self, task: PlannedTask, method: ScoringMethod | None) -> TaskBaselines | None:
        return self._rows.task_baselines.get(_scored(task, method))

    async def keep(self, task: PlannedTask, method: ScoringMethod | None, baselines: TaskBaselines) -> None:
        self._rows.task_baselines.setdefault(_scored(task, method), baselines)


class MemoryWaitingRuns:
    """Runs that wait for baselines, those that were started less often first."""

    def __init__(self, rows: MemoryRows, leases: MemoryLeases) -> None:
        self._rows = rows
        self._leases = leases

    async def next(self, kind: WorkKind) -> Work | None:
        complete = [run for run in self._rows.closed.values() if run.state is RunState.COMPLETED]
        waiting = {
            Work(kind, run.run_id, 1): run.closed_at
            for run in complete
            if run.run_id not in self._rows.run_baselines
        }
        free = [work for work in waiting if work not in self._leases.held]
        return min(free, key=lambda work: (self._leases.starts[work], waiting[work]), default=None)


class ThreadCalls:
    """Calls as a process of its own does, without the second that its start takes."""

    async def call(self, seconds: float, function: Callable[..., T], *arguments: object) -> T:
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.to_thread(function, *arguments)
        except TimeoutError as error:
            raise TookTooLong from error


class MemoryDifferences:
    """Differences that a test stores."""

    def __init__(self, *stored: StoredDifference) -> None:
        self.stored = list(stored)

    async def of_runs(
        self, run_ids: Sequence[str], metric: str
    ) -> Mapping[tuple[str, str], StoredDifference]:
        both_ways = [way for one in self.stored for way in (one, one.reversed())]
        in_order = set(combinations(run_ids, 2))
        return {
            (one.first_run_id, one.second_run_id): one
            for one in both_ways
            if one.metric == metric and (one.first_run_id, one.second_run_id) in in_order
        }

    async def p_values(self, run_ids: Sequence[str], metric: str) -> Mapping[tuple[int, int], float | None]:
        stored = await self.of_runs(run_ids, metric)
        return {
            (run_ids.index(first), run_ids.index(second)): one.p_value
            for (first, second), one in stored.items()
        }


def _conditions(run: ClosedRun, metric: str) -> tuple[str, str]:
    """Runs that cannot be ranked share one entry of their model."""
    conditions, result = run.result.conditions.of_metric(metric), run.result
    return run.model, "" if result.failing_tasks else conditions.key


def _scored(task: PlannedTask, method: ScoringMethod | None) -> str:
    return f"{task.sample_set_id} {task.scoring} {method}"


def _kind(run: ClosedRun) -> RunKind:
    return RunKind.DATASET if run.result.dataset_name else RunKind.SUITE


def _key(run: ClosedRun) -> tuple[datetime, str]:
    return run.closed_at, run.run_id


def _worth(run: ClosedRun, metric: str) -> tuple[float, tuple[datetime, str]]:
    return run.result.worth(metric), _key(run)
