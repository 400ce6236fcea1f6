"""Leaderboards, histories and baselines in Postgres, and the JSON that is kept of them."""

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
    RunStanding,
    SuiteBaselines,
    SuiteFigure,
    standing_of,
)
from services.results.leaderboard.conditions import RunTerms, terms_of
from services.results.leaderboard.leaderboard import BoardEntry
from services.results.leaderboard.ports import HistoryPage
from services.results.runs.postgres import SCORING
from services.results.runs.run_plan import PlannedTask, RunPlan, RunRecord
from services.results.statistics.figure import Figure
from services.results.statistics.metrics import SCORE
from services.results.summaries.run_summary import RunSummary

_Fields = Mapping[str, Any]


def standing_to_json(standing: RunStanding) -> str:
    return orjson.dumps(asdict(standing)).decode()


def standing_from_json(text: str) -> RunStanding:
    fields: _Fields = orjson.loads(text)
    terms: _Fields = fields["terms"]
    return RunStanding(
        RunTerms(
            **{
                **terms,
                "scoring_method": terms["scoring_method"] and ScoringMethod(terms["scoring_method"]),
                "missing_tasks": tuple(terms["missing_tasks"]),
                "stand_in_tasks": tuple(terms["stand_in_tasks"]),
                # Those kept before there were data sets have none.
                "metrics": tuple((name, options) for name, options in terms.get("metrics", ())),
            }
        ),
        _suite_figures(fields["figures"]),
        fields["answered"],
        fields["failed"],
        fields["unparsed"],
        tuple(fields["failing_tasks"]),
        fields.get("dataset_name", ""),
    )


def baselines_to_json(baselines: SuiteBaselines | TaskBaselines) -> str:
    """Of a suite or of a task: names, metrics, figures."""
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
    run_id, standing = plan.run_id, standing_of(plan, summary)
    await transaction.execute("drop_earlier_close", run_id, summary.epoch)
    if await transaction.fetchrow("add_closed_run", run_id, standing_to_json(standing)) is None:
        return
    await transaction.execute("add_history_entries", run_id)
    means = [one.figure.mean for one in standing.figures.values()]
    await transaction.execute(
        "add_board_entries",
        run_id,
        [
            standing.terms.of_metric(metric).text if standing.is_whole else CANNOT_BE_RANKED
            for metric in standing.figures
        ],
        list(standing.figures),
        [-math.inf if mean is None else mean for mean in means],
    )


class PostgresStandings:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def metrics(self, suite: str, project_id: int | None) -> list[str]:
        rows = await self._session.fetch("list_board_metrics", suite, _project(project_id))
        return [row["metric"] for row in rows]

    async def entries(
        self, suite: str, metric: str, project_id: int | None, *, is_best: bool
    ) -> list[BoardEntry]:
        query = "list_best_entries" if is_best else "list_latest_entries"
        rows = await self._session.fetch(query, suite, _project(project_id), metric)
        return [
            BoardEntry(_closed_run(row), metric, row["previous_run_id"] or "", row["is_latest"])
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
    """As it is written in a board; the board of all projects has none."""
    return "" if project_id is None else str(project_id)


def _closed_run(row: asyncpg.Record) -> ClosedRun:
    return ClosedRun(
        row["run_id"],
        row["suite"],
        row["model"],
        row["project_id"],
        RunState(row["state"]) if row["state"] else None,
        row["closed_at"],
        standing_from_json(row["standing"]),
    )


class PostgresPeers:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def waiting(self, most: int) -> list[str]:
        return [row["run_id"] for row in await self._session.fetch("list_runs_to_compare", most)]

    async def previous_run(self, run: RunPlan) -> str | None:
        facts, terms = run.facts, terms_of(run).of_metric(SCORE)
        row = await self._session.fetchrow(
            "find_previous_run", run.run_id, facts.suite, facts.model, terms.text
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
