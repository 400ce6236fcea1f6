"""Boards and histories in Postgres."""

import math
from collections.abc import Sequence

import asyncpg

from proctor.values.run import RunState
from services.common.postgres import PostgresSession, PostgresTransaction
from services.results.ports import HistoryPage
from services.results.runs.run_plan import RunPlan
from services.results.standings.board import BoardEntry
from services.results.standings.json_standings import (
    baselines_from_json,
    standing_from_json,
    standing_to_json,
)
from services.results.standings.standing import ClosedRun, SuiteBaselines, standing_of
from services.results.summaries.run_summary import RunSummary

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
