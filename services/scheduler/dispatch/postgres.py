"""Shards in Postgres: which wait, which are on the wire. Attempts are counted before anything is sent."""

from collections.abc import Sequence

import asyncpg

from services.scheduler.dispatch.ports import ShardMoves
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.planning.shard import Shard
from services.scheduler.postgres_sessions import Queries, Sessions
from services.scheduler.runs.lifecycle.postgres_led_runs import array_literal
from services.scheduler.runs.lifecycle.run import Run


class PostgresShards:
    """Keeps the shards of runs in Postgres."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def planned(self, run: Run, after: int, limit: int) -> Sequence[Shard]:
        rows = await self._sessions.read(
            lambda connection: connection.fetch(
                Queries["planned_shards"], run.run_id, run.epoch, after, limit
            )
        )
        return [_shard_from_row(row) for row in rows]

    async def dispatched(self, run: Run) -> Sequence[Shard]:
        rows = await self._sessions.read(
            lambda connection: connection.fetch(Queries["dispatched_shards"], run.run_id, run.epoch)
        )
        return [_shard_from_row(row) for row in rows]

    async def move(self, token: FencingToken, run: Run, moves: ShardMoves) -> bool:
        """One statement, so that a step of dispatch costs one round trip."""
        numbers = [shard.number for shard in moves.dispatched]
        attempts = [shard.attempt for shard in moves.dispatched]
        values = (token, run.run_id, run.epoch, list(moves.done), numbers, attempts)
        row = await self._sessions.read(
            lambda connection: connection.fetchrow(Queries["move_shards"], *values)
        )
        if row is None or not row["is_leader"]:
            raise LeadershipLost
        return bool(row["is_live"])

    async def return_shards(self, token: FencingToken, run: Run, shards: Sequence[Shard]) -> None:
        values = (
            run.run_id,
            run.epoch,
            [shard.number for shard in shards],
            [array_literal(shard.samples) for shard in shards],
        )
        await self._sessions.lead(
            token, lambda connection: connection.execute(Queries["give_back_shards"], *values)
        )


def _shard_from_row(row: asyncpg.Record) -> Shard:
    return Shard(
        number=row["shard"],
        task_index=row["task_index"],
        rollout=row["rollout"],
        samples=row["samples"],
        size=row["size"],
        attempt=row["attempt"],
    )
