"""Shards in Postgres: which wait and which are in flight. Attempts are stored before anything is sent."""

from collections.abc import Sequence

import asyncpg

from services.common.postgres import PostgresSession
from services.scheduler.dispatch.ports import ShardMoves
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.leadership.postgres import run_as_leader
from services.scheduler.planning.postgres import array_literal
from services.scheduler.planning.shard import Shard
from services.scheduler.runs.lifecycle.run import Run


class PostgresShards:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def planned(self, run: Run, after: int, limit: int) -> Sequence[Shard]:
        values = (run.run_id, run.epoch, after, limit)
        return _shards(await self._session.fetch("planned_shards", *values))

    async def dispatched(self, run: Run) -> Sequence[Shard]:
        return _shards(await self._session.fetch("dispatched_shards", run.run_id, run.epoch))

    async def move(self, token: FencingToken, run: Run, moves: ShardMoves) -> bool:
        """A single statement, so that dispatching costs one round trip."""
        numbers = [shard.number for shard in moves.dispatched]
        attempts = [shard.attempt for shard in moves.dispatched]
        values = (token, run.run_id, run.epoch, list(moves.done), numbers, attempts)
        row = await self._session.fetchrow("move_shards", *values)
        if row is None or not row["is_leader"]:
            raise LeadershipLost
        return bool(row["is_live"])

    async def return_shards(self, token: FencingToken, run: Run, shards: Sequence[Shard]) -> None:
        numbers = [shard.number for shard in shards]
        samples = [array_literal(shard.samples) for shard in shards]
        values = (run.run_id, run.epoch, numbers, samples)
        await run_as_leader(
            self._session, token, lambda transaction: transaction.execute("return_shards", *values)
        )


def _shards(rows: Sequence[asyncpg.Record]) -> list[Shard]:
    return [Shard(*row) for row in rows]
