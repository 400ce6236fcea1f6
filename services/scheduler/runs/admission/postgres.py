"""The queue in Postgres, to be looked at: it is decided elsewhere, by the same order."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import asyncpg

from services.scheduler.postgres_sessions import Connection, Queries, Sessions
from services.scheduler.runs.admission.run_estimate import History, PastRun
from services.scheduler.runs.admission.run_queue import QueuedRuns, UserRunCounts, WaitingRun
from services.scheduler.runs.lifecycle.postgres import past_run_from_row, run_from_row
from services.scheduler.runs.lifecycle.run import RunId


class PostgresQueue:
    """Reads what runs, waits and is paused, and what ended runs tell of them."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def queue(self, most: int) -> QueuedRuns:
        async def look(connection: Connection) -> QueuedRuns:
            await connection.execute(Queries["look_at_one_moment"])
            running = await connection.fetch(Queries["running_runs"])
            order = await connection.fetch(Queries["queue_order"], None, most)
            waiting = await connection.fetch(Queries["waiting_runs"], [row["run_id"] for row in order])
            paused = await connection.fetch(Queries["paused_runs"], most)
            users = [UserRunCounts(*row) for row in await connection.fetch(Queries["user_run_counts"])]
            return QueuedRuns(
                running=[run_from_row(row) for row in running],
                waiting=[WaitingRun(run_from_row(row), row["queued_at"]) for row in waiting],
                waiting_total=sum(user.pending for user in users),
                users=users,
                paused=[run_from_row(row) for row in paused],
            )

        return await self._sessions.run(look)

    async def positions(self, runs: Sequence[RunId]) -> Mapping[RunId, int]:
        rows = await self._fetch("queue_order", list(runs), len(runs))
        return {RunId(str(row["run_id"])): row["position"] for row in rows}

    async def past_runs(self, wanted: Collection[tuple[str, str]]) -> History:
        suites, models = [suite for suite, _ in wanted], [model for _, model in wanted]
        found: dict[tuple[str, str], list[PastRun]] = defaultdict(list)
        for row in await self._fetch("past_runs", suites, models):
            found[row["suite"], row["model"]].append(past_run_from_row(row))
        return found

    async def _fetch(self, query: str, *values: object) -> list[asyncpg.Record]:
        rows: list[asyncpg.Record] = await self._sessions.read(
            lambda connection: connection.fetch(Queries[query], *values)
        )
        return rows
