"""Lists of runs in Postgres, and the token counts of completed runs."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import asyncpg

from services.common.postgres import load_queries
from services.scheduler.postgres_sessions import Connection, Sessions
from services.scheduler.runs.admission.postgres import past_run_from_row
from services.scheduler.runs.lifecycle.json_runs import counts_from_json
from services.scheduler.runs.lifecycle.postgres_rows import run_from_row
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.model_price import TokenUsage
from services.scheduler.runs.reads.run_list import PastUsage, RunCursor, RunFilter, RunPage

QUERIES = load_queries(Path(__file__).with_name("queries.sql"))

# Newer than any run. A value and not null, so that the first page is read by the same index.
_BEFORE_ALL = RunCursor(datetime(9999, 1, 1, tzinfo=UTC), "ffffffff-ffff-ffff-ffff-ffffffffffff", total=0)


class PostgresRunLists:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def page(self, wanted: RunFilter, size: int, after: RunCursor | None) -> RunPage:
        filters = (
            wanted.state,
            wanted.suite or None,
            wanted.model or None,
            wanted.project_id,
            wanted.kind,
            wanted.dataset_id or None,
        )
        start = after or _BEFORE_ALL

        async def page(connection: Connection) -> RunPage:
            await connection.execute(QUERIES["plan_by_values"])
            rows = await connection.fetch(
                QUERIES["list_runs"], *filters, start.created_at, start.run_id, size
            )
            total = after.total if after else await connection.fetchval(QUERIES["count_runs"], *filters)
            return RunPage([run_from_row(row) for row in rows], total)

        return await self._sessions.run(page)

    async def past_usage(self, run: Run) -> Sequence[PastUsage]:
        order = run.order
        wanted = (order.subject, order.model, run.scoring_method, json.dumps(order.token_settings))
        return [_past_usage(row) for row in await self._sessions.fetch(QUERIES["past_usage"], *wanted)]


def _past_usage(row: asyncpg.Record) -> PastUsage:
    counts = counts_from_json(row["final_counts"])
    return PastUsage(past_run_from_row(row), counts.usage if counts else TokenUsage())
