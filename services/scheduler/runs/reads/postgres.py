"""Lists of runs in Postgres, and the token counts of completed runs."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import asyncpg

from proctor.values.plain import MAX_COUNTED
from proctor.values.run import RunCounts
from proctor.values.usage import TokenUsage
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.runs.admission.postgres import past_run_from_row
from services.scheduler.runs.lifecycle.postgres_rows import from_json, run_from_row
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.reads.run_list import PastUsage, RunCursor, RunFilter, RunPage

# Newer than any run. A value and not null, so that the first page is read by the same index.
_BEFORE_ALL = RunCursor(datetime(9999, 1, 1, tzinfo=UTC), "ffffffff-ffff-ffff-ffff-ffffffffffff", total=0)


class PostgresRunLists:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def page(self, wanted: RunFilter, size: int, after: RunCursor | None) -> RunPage:
        first_id, last_id = _id_range(wanted.id_prefix)
        filters = {
            "state": wanted.state,
            "benchmark": wanted.benchmark or None,
            "model": wanted.model or None,
            "project_id": wanted.project_id,
            "kind": wanted.kind,
            "dataset_id": wanted.dataset_id or None,
            "first_id": first_id,
            "last_id": last_id,
            "name": wanted.name or None,
            "tag": wanted.tag or None,
            "days": wanted.days or None,
            "models": list(wanted.models) or None,
            "run_ids": list(wanted.run_ids) or None,
        }
        start = after or _BEFORE_ALL

        async def page(transaction: PostgresTransaction) -> RunPage:
            # A generic plan would serve no combination of filters well, since each unset one is a null.
            await transaction.execute("plan_by_values")
            rows = await transaction.fetch(
                "list_runs",
                **filters,
                before_created_at=start.created_at,
                before_run_id=start.run_id,
                limit=size,
            )
            runs = [run_from_row(row) for row in rows]
            if after:
                return RunPage(runs, after.total)
            counted = await transaction.fetchrow("count_runs", **filters, most=MAX_COUNTED + 1)
            assert counted is not None, "an aggregate has one row"
            return RunPage(runs, counted["total"], counted["completed"])

        return await self._session.run(page)

    async def model_names(self, name: str) -> Sequence[str]:
        return [row["model"] for row in await self._session.fetch("list_model_names", name=name)]

    async def past_usage(self, run: Run) -> Sequence[PastUsage]:
        order = run.order
        rows = await self._session.fetch(
            "list_past_usage",
            benchmark=order.benchmark,
            model=order.model,
            scoring_method=run.scoring_method,
            token_settings=json.dumps(order.token_settings),
        )
        return [_past_usage(row) for row in rows]


def _id_range(prefix: str) -> tuple[UUID | None, UUID | None]:
    """The first and the last id with the prefix: the primary key finds what is between."""
    return (UUID(prefix.ljust(32, "0")), UUID(prefix.ljust(32, "f"))) if prefix else (None, None)


def _past_usage(row: asyncpg.Record) -> PastUsage:
    counts = from_json(RunCounts, row["final_counts"])
    return PastUsage(past_run_from_row(row), counts.usage if counts else TokenUsage())
