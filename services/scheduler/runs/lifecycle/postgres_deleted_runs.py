"""Deletes runs in Postgres, and keeps which ones results may still have."""

from collections.abc import Sequence
from datetime import datetime

from services.scheduler.postgres_sessions import Connection, Queries, Sessions
from services.scheduler.runs.lifecycle.errors import RunNotFound, RunNotOver
from services.scheduler.runs.lifecycle.run import SUMMARISING, RunId, RunState

MOST_AT_A_TIME = 100


class PostgresDeletedRuns:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def delete(self, run_id: RunId, now: datetime) -> None:
        async def delete(connection: Connection) -> None:
            row = await connection.fetchrow(Queries["hold_run_to_delete"], run_id)
            if row is None:
                if await connection.fetchval(Queries["was_deleted_then"], run_id, now):
                    return
                raise RunNotFound(run_id=run_id)
            if not row["is_closed"]:
                is_closing = row["step"] == SUMMARISING or RunState(row["state"]).is_final
                raise RunNotOver(run_id=run_id, state="being summed up" if is_closing else row["state"])
            if await connection.fetchval(Queries["unwritten_batch_of_run"], run_id):
                raise RunNotOver(run_id=run_id, state="being written to the files of its batch")
            await connection.execute(Queries["add_deleted_run"], run_id, now)
            await connection.execute(Queries["delete_run"], run_id)

        await self._sessions.run(delete)

    async def deleted(self, before: datetime) -> Sequence[RunId]:
        rows = await self._sessions.read(
            lambda connection: connection.fetch(Queries["deleted_runs"], before, MOST_AT_A_TIME)
        )
        return [RunId(str(row["run_id"])) for row in rows]

    async def forget_deleted(self, run_id: RunId) -> None:
        await self._sessions.run(lambda connection: connection.execute(Queries["forget_deleted_run"], run_id))
