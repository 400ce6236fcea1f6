"""Leaderboards, histories and baselines in Postgres, and the JSON in which they are stored."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import asyncpg
import orjson

from proctor.values.run import RunState
from proctor.values.scoring import ScoringMethod
from services.common.postgres import PostgresSession, PostgresTransaction
from services.results.leaderboard.baseline import TaskBaselines
from services.results.leaderboard.closed_run import (
    ClosedRun,
    SuiteBaselines,
    SuiteFigure,
    SuiteResult,
    suite_result,
)
from services.results.leaderboard.conditions import EvaluationConditions, conditions_of
from services.results.leaderboard.leaderboard import Candidate
from services.results.leaderboard.ports import HistoryPage
from services.results.runs.postgres import SCORING
from services.results.runs.run_plan import PlannedTask, RunPlan, RunRecord
from services.results.statistics.figure import Figure
from services.results.statistics.metrics import SCORE
from services.results.summaries.run_summary import RunSummary

_Fields = Mapping[str, Any]


def result_to_json(result: SuiteResult) -> str:
    return orjson.dumps(asdict(result)).decode()


def result_from_json(text: str) -> SuiteResult:
    fields: _Fields = orjson.loads(text)
    conditions: _Fields = fields["conditions"]
    return SuiteResult(
        EvaluationConditions(
            **{
                **conditions,
                "scoring_method": conditions["scoring_method"]
                and ScoringMethod(conditions["scoring_method"]),
                "missing_tasks": tuple(conditions["missing_tasks"]),
                "stand_in_tasks": tuple(conditions["stand_in_tasks"]),
                # Those kept before there were data sets have none.
                "metrics": tuple((name, options) for name, options in conditions.get("metrics", ())),
            }
        ),
        _suite_figures(fields["figures"]),
        fields["answered"],
        fields["failed"],
        fields["unparsed"],
        tuple(fields["failing_tasks"]),
        fields["dataset_name"],
        fields["max_failed_share"],
    )


def baselines_to_json(baselines: SuiteBaselines | TaskBaselines) -> str:
    """Baselines of a suite or of a task: names, metrics, figures."""
    by_name = {
        name: {metric: asdict(figure) for metric, figure in figures.items()}
        for name, figures in baselines.items()
    }
    return orjson.dumps(by_name).decode()


def baselines_from_json(text: str) -> SuiteBaselines:
    return {name: _suite_figures(figures) for name, figures in orjson.loads(text).items()}


def task_baselines_from_json(text: str) -> TaskBaselines:
    return {
        name: {metric: Figure(**one) for metric, one in figures.items()}
        for name, figures in orjson.loads(text).items()
    }


def _suite_figures(fields: Mapping[str, _Fields]) -> dict[str, SuiteFigure]:
    return {
        metric: SuiteFigure(Figure(**figure["figure"]), figure["task_count"])
        for metric, figure in fields.items()
    }


CANNOT_BE_RANKED = ""


async def add_closed_run(transaction: PostgresTransaction, plan: RunPlan, summary: RunSummary) -> None:
    """Lists a run as it was closed just now, unless it is listed with its epoch already."""
    run_id, result = plan.run_id, suite_result(plan, summary)
    await transaction.execute("drop_earlier_close", run_id, summary.epoch)
    if await transaction.fetchrow("add_closed_run", run_id, result_to_json(result)) is None:
        return
    await transaction.execute("add_history_entries", run_id)
    means = [one.figure.mean for one in result.figures.values()]
    await transaction.execute(
        "add_leaderboard_entries",
        run_id,
        [
            result.conditions.of_metric(metric).text if result.is_whole else CANNOT_BE_RANKED
            for metric in result.figures
        ],
        list(result.figures),
        [-math.inf if mean is None else mean for mean in means],
    )


class PostgresLeaderboard:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def metrics(self, suite: str, project_id: int | None) -> list[str]:
        rows = await self._session.fetch("list_leaderboard_metrics", suite, _project(project_id))
        return [row["metric"] for row in rows]

    async def candidates(
        self, suite: str, metric: str, project_id: int | None, *, is_best: bool
    ) -> list[Candidate]:
        query = "list_best_entries" if is_best else "list_latest_entries"
        rows = await self._session.fetch(query, suite, _project(project_id), metric)
        return [
            Candidate(_closed_run(row), metric, row["previous_run_id"] or "", row["is_latest"])
            for row in rows
        ]

    async def baselines(self, run_ids: Sequence[str]) -> SuiteBaselines:
        row = await self._session.fetchrow("read_newest_baselines", run_ids)
        return {} if row is None else baselines_from_json(row["baselines"])

    async def page(self, page: HistoryPage) -> list[ClosedRun]:
        closed_at, run_id = page.after
        rows = await self._session.fetch(
            "list_history", page.suite, page.model, page.since, closed_at, run_id, page.page_size
        )
        return [_closed_run(row) for row in rows]

    async def count(self, page: HistoryPage) -> int:
        row = await self._session.fetchrow("count_history", page.suite, page.model, page.since)
        return 0 if row is None else int(row["runs"])


def _project(project_id: int | None) -> str:
    """As a leaderboard stores it; that of all projects has none."""
    return "" if project_id is None else str(project_id)


def _closed_run(row: asyncpg.Record) -> ClosedRun:
    return ClosedRun(
        row["run_id"],
        row["suite"],
        row["model"],
        row["project_id"],
        RunState(row["state"]) if row["state"] else None,
        row["closed_at"],
        result_from_json(row["result"]),
    )


class PostgresPeers:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def waiting(self, most: int) -> list[str]:
        return [row["run_id"] for row in await self._session.fetch("list_runs_to_compare", most)]

    async def previous_run(self, run: RunPlan) -> str | None:
        facts, conditions = run.facts, conditions_of(run).of_metric(SCORE)
        row = await self._session.fetchrow(
            "find_previous_run", run.run_id, facts.suite, facts.model, conditions.text
        )
        return None if row is None else str(row["run_id"])

    async def mark_compared(self, run: RunRecord) -> None:
        await self._session.fetch("mark_compared", run.plan.run_id, run.epoch)


class PostgresBaselines:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def runs_without(self, most: int) -> list[str]:
        rows = await self._session.fetch("list_runs_without_baselines", most)
        return [row["run_id"] for row in rows]

    async def keep_for_run(self, run_id: str, baselines: SuiteBaselines) -> None:
        await self._session.fetch("keep_run_baselines", run_id, baselines_to_json(baselines))

    async def find(self, task: PlannedTask, method: ScoringMethod | None) -> TaskBaselines | None:
        key = (task.sample_set_id, _scoring_digest(task, method))
        row = await self._session.fetchrow("read_task_baselines", *key)
        return None if row is None else task_baselines_from_json(row["baselines"])

    async def keep(self, task: PlannedTask, method: ScoringMethod | None, baselines: TaskBaselines) -> None:
        key = (task.sample_set_id, _scoring_digest(task, method))
        # The set may have gone with its last run meanwhile.
        with suppress(asyncpg.ForeignKeyViolationError):
            await self._session.fetch("add_task_baselines", *key, baselines_to_json(baselines))


def _scoring_digest(task: PlannedTask, method: ScoringMethod | None) -> bytes:
    return hashlib.sha256(f"{method} {SCORING.dump_json(task.scoring).decode()}".encode()).digest()
