"""Runs in Postgres, as the leader changes them: each write checks its term in the same transaction."""

import json
from collections.abc import Sequence
from datetime import datetime

from proctor.values.run import RunCounts, RunId
from services.common.postgres import PostgresSession
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.leadership.postgres import run_as_leader
from services.scheduler.runs.lifecycle.json_runs import to_json
from services.scheduler.runs.lifecycle.postgres_rows import run_from_row, run_ids_from_rows
from services.scheduler.runs.lifecycle.run import Run, RunEnding, states_before


class PostgresLedRuns:
    """The leader's side of the runs."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def expired(self, now: datetime) -> Sequence[Run]:
        return [run_from_row(row) for row in await self._session.fetch("expired_runs", now)]

    async def unfinished(self) -> Sequence[RunId]:
        return run_ids_from_rows(await self._session.fetch("unfinished_runs"))

    async def live_among(self, runs: Sequence[RunId]) -> Sequence[RunId]:
        return run_ids_from_rows(await self._session.fetch("live_among", list(runs)))

    async def set_step(self, token: FencingToken, run: Run, step: str) -> bool:
        return await self._write(token, "set_step", run.run_id, run.epoch, step)

    async def finish(self, token: FencingToken, run: Run, ending: RunEnding) -> bool:
        return await self._write(
            token,
            "finish_run",
            run.run_id,
            run.epoch,
            ending.state,
            states_before(ending.state),
            ending.now,
            ending.error.reason if ending.error else None,
            ending.error.message if ending.error else None,
            *_counts_values(ending.counts),
        )

    async def mark_closed(self, token: FencingToken, run: Run, counts: RunCounts | None) -> None:
        await self._write(token, "close_run", run.run_id, run.epoch, *_counts_values(counts))

    async def _write(self, token: FencingToken, query: str, *values: object) -> bool:
        changed = await run_as_leader(
            self._session, token, lambda transaction: transaction.fetchval(query, *values)
        )
        return changed is not None


def _counts_values(counts: RunCounts | None) -> tuple[str | None, str]:
    return to_json(counts), json.dumps(dict(counts.environment) if counts else {})
