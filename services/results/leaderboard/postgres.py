"""Leaderboards, histories and baselines in Postgres."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

import asyncpg
import orjson
from pydantic import TypeAdapter

from proctor.values.names.project import is_declared
from proctor.values.plain import MAX_COUNTED
from proctor.values.run import RunState
from proctor.values.scoring import ScoringMethod
from services.common.postgres import PostgresSession, PostgresTransaction
from services.common.sql.row_scope import EVERYTHING, current_scope
from services.results.leaderboard.baseline import TaskBaselines
from services.results.leaderboard.closed_run import (
    BenchmarkBaselines,
    BenchmarkResult,
    ClosedRun,
    benchmark_result,
)
from services.results.leaderboard.conditions import EvaluationConditions
from services.results.leaderboard.leaderboard import Candidate
from services.results.leaderboard.ports import HistoryRange, HistoryTotals
from services.results.leases.lease import Work, WorkKind
from services.results.runs.conditions import EvaluatedRun
from services.results.runs.postgres import SCORING
from services.results.runs.run_plan import PlannedTask, RunPlan, RunRecord
from services.results.statistics.variance_split import RepetitionSpread
from services.results.summaries.run_summary import RunSummary

RESULT = TypeAdapter(BenchmarkResult)
BENCHMARK_BASELINES = TypeAdapter(BenchmarkBaselines)
TASK_BASELINES = TypeAdapter(TaskBaselines)

# Some 3 kB each: what several users look at in turn.
KNOWN_RESULTS = 4_000
CANNOT_BE_RANKED = ""
# The newest of the runs that repeat each other.
MAX_REPETITIONS = 8


async def add_closed_run(
    transaction: PostgresTransaction, plan: RunPlan, summary: RunSummary, *, is_again: bool = False
) -> None:
    """Lists a run as it was closed just now, unless it is listed with its epoch already.

    One that is closed again keeps its place in time, and is compared again. One that asks no model is found
    by its id only.
    """
    run_id = plan.run_id
    reported = await transaction.fetchrow("read_environment", run_id=run_id)
    environment = orjson.loads(reported["environment"] or "{}") if reported else {}
    result = benchmark_result(EvaluatedRun(plan, environment), summary)
    closed_at = await transaction.fetchval(
        "delete_earlier_close", run_id=run_id, epoch=summary.epoch, is_again=is_again
    )
    added = await transaction.fetchrow(
        "add_closed_run",
        run_id=run_id,
        result=RESULT.dump_json(result).decode(),
        closed_at=closed_at if is_again else None,
    )
    if added is None:
        return
    if is_again:
        await transaction.execute("mark_uncompared", run_id=run_id)
    if result.asks_no_model:
        return
    await transaction.execute("add_history_entries", run_id=run_id)
    await transaction.execute(
        "add_leaderboard_entries",
        run_id=run_id,
        conditions=[_conditions_key(result, metric) for metric in result.figures],
        metrics=list(result.figures),
        # The best one is the largest, also of figures of which less is better.
        means=[result.worth(metric) for metric in result.figures],
        is_whole=result.is_whole,
    )


def _conditions_key(result: BenchmarkResult, metric: str) -> str:
    return CANNOT_BE_RANKED if result.failing else result.conditions.of_metric(metric).key


class PostgresLeaderboard:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def latest_runs(self, benchmark: str, models: Sequence[str]) -> Mapping[str, str]:
        rows = await self._session.fetch("list_latest_runs", benchmark=benchmark, models=list(models))
        return {row["model"]: row["run_id"] for row in rows}

    async def metrics(self, benchmark: str, project_id: int | None) -> list[str]:
        rows = await self._session.fetch(
            "list_leaderboard_metrics", benchmark=benchmark, project_id=_project(project_id)
        )
        return [row["metric"] for row in rows]

    async def candidates(
        self, benchmark: str, metric: str, project_id: int | None, *, is_best: bool
    ) -> list[Candidate]:
        rows = await self._session.fetch(
            "list_entries",
            benchmark=benchmark,
            project_id=_project(project_id),
            metric=metric,
            is_best=is_best,
            most=MAX_COUNTED + 1,
        )
        return [
            Candidate(_closed_run(row), metric, row["previous_run_id"] or "", row["is_latest"], row["runs"])
            for row in rows
        ]

    async def newest_run(self, benchmark: str) -> ClosedRun | None:
        row = await self._session.fetchrow("find_newest_run", benchmark=benchmark)
        return None if row is None else _closed_run(row)

    async def closed_run(self, run_id: str) -> ClosedRun | None:
        row = await self._session.fetchrow("read_closed_run", run_id=run_id)
        return None if row is None else _closed_run(row)

    async def repetitions(self, run_id: str, metric: str) -> Sequence[str]:
        rows = await self._session.fetch(
            "list_repetitions", run_id=run_id, metric=metric, limit=MAX_REPETITIONS
        )
        return [row["run_id"] for row in rows]

    async def spread(
        self, run_ids: Sequence[str], metric: str, project_id: int | None
    ) -> RepetitionSpread | None:
        row = await self._session.fetchrow(
            "read_repetition_spread",
            run_ids=list(run_ids),
            metric=metric,
            project_id=_project(project_id),
            limit=MAX_REPETITIONS,
        )
        return RepetitionSpread(**row) if row and row["models"] else None

    async def baselines(self, run_ids: Sequence[str]) -> BenchmarkBaselines:
        row = await self._session.fetchrow("read_newest_baselines", run_ids=run_ids)
        return {} if row is None else BENCHMARK_BASELINES.validate_json(row["baselines"])

    async def page(self, page: HistoryRange) -> list[ClosedRun]:
        closed_at, run_id = page.after
        rows = await self._session.fetch(
            "list_history",
            benchmark=_history(page),
            model=page.model,
            since=page.since,
            before_closed_at=closed_at,
            before_run_id=run_id,
            limit=page.page_size,
            state=page.state or "",
        )
        return [_closed_run(row) for row in rows]

    async def runs(self, run_ids: Sequence[str]) -> list[ClosedRun]:
        rows = await self._session.fetch("list_closed_runs", run_ids=list(run_ids))
        return [_closed_run(row) for row in rows]

    async def count(self, page: HistoryRange) -> int:
        row = await self._session.fetchrow(
            "count_history",
            benchmark=_history(page),
            model=page.model,
            since=page.since,
            most=MAX_COUNTED + 1,
            sees_all=current_scope().readable == EVERYTHING,
        )
        return 0 if row is None else int(row["runs"])

    async def totals(self, page: HistoryRange) -> HistoryTotals:
        row = await self._session.fetchrow(
            "sum_history",
            benchmark=_history(page),
            model=page.model,
            state=page.state or "",
            since=page.since,
            most=MAX_COUNTED + 1,
        )
        assert row
        return HistoryTotals(**row)


def _history(page: HistoryRange) -> str:
    """The key of a history in the table: a benchmark, or all of a kind."""
    return page.benchmark or (f"*{page.kind}" if page.kind else "")


def _project(project_id: int | None) -> str:
    """A project as a leaderboard stores it; that of all projects has none."""
    return "" if project_id is None else str(project_id)


def _closed_run(row: asyncpg.Record) -> ClosedRun:
    return ClosedRun(
        row["run_id"],
        row["benchmark"],
        row["model"],
        row["project_id"],
        RunState(row["state"]) if row["state"] else None,
        row["closed_at"],
        _result(row["run_id"], row["result"]),
    )


@lru_cache(maxsize=KNOWN_RESULTS)
def _result(_run_id: str, text: str) -> BenchmarkResult:
    """Caches parsed results of closed runs, because pages list the same runs."""
    return RESULT.validate_json(text)


class PostgresPeers:
    """Knows what a run is still to be compared with."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def previous_run(self, run: RunPlan, conditions: EvaluationConditions) -> str | None:
        """The completed run of the same model under the same conditions before this one."""
        facts = run.facts
        row = await self._session.fetchrow(
            "find_previous_run",
            run_id=run.run_id,
            benchmark=facts.benchmark,
            project_id=str(facts.project_id) if is_declared(facts.project_id) else "",
            model=facts.model,
            conditions=conditions.key,
        )
        return None if row is None else str(row["run_id"])

    async def mark_compared(self, run: RunRecord) -> None:
        """The run waits no more."""
        await self._session.fetch("mark_compared", run_id=run.plan.run_id, epoch=run.epoch)


class PostgresWaitingRuns:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def next(self, kind: WorkKind) -> Work | None:
        row = await self._session.fetchrow("find_waiting_run", work=kind)
        return None if row is None else Work(kind, row["run_id"], row["epoch"])


class PostgresBaselines:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def keep_for_run(self, run_id: str, baselines: BenchmarkBaselines) -> None:
        await self._session.fetch(
            "store_run_baselines", run_id=run_id, baselines=BENCHMARK_BASELINES.dump_json(baselines).decode()
        )

    async def find(self, task: PlannedTask, method: ScoringMethod | None) -> TaskBaselines | None:
        row = await self._session.fetchrow(
            "read_task_baselines",
            sample_set_id=task.sample_set_id,
            scoring_digest=_scoring_digest(task, method),
        )
        return None if row is None else TASK_BASELINES.validate_json(row["baselines"])

    async def keep(self, task: PlannedTask, method: ScoringMethod | None, baselines: TaskBaselines) -> None:
        # The set may have gone with its last run meanwhile.
        with suppress(asyncpg.ForeignKeyViolationError):
            await self._session.fetch(
                "add_task_baselines",
                sample_set_id=task.sample_set_id,
                scoring_digest=_scoring_digest(task, method),
                baselines=TASK_BASELINES.dump_json(baselines).decode(),
            )


def _scoring_digest(task: PlannedTask, method: ScoringMethod | None) -> bytes:
    return hashlib.sha256(f"{method} {SCORING.dump_json(task.scoring).decode()}".encode()).digest()
