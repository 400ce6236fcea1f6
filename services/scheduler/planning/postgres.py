"""Tasks and shards of planned runs in Postgres. Attempts are stored before anything is sent."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import asyncpg

from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.leadership.postgres import run_as_leader, write_as_leader
from services.scheduler.planning.ports import PlanRecord, ShardMoves
from services.scheduler.planning.shard import Shard
from services.scheduler.runs.lifecycle.postgres_rows import to_json
from services.scheduler.runs.lifecycle.run import PlannedTask, Run


class PostgresShards:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def delete_shards(self, token: FencingToken, run: Run) -> None:
        await write_as_leader(self._session, token, "delete_shards", run_id=run.run_id, epoch=run.epoch)

    async def next_shard_number(self, run: Run) -> int:
        number: int = await self._session.fetchval("read_next_shard", run_id=run.run_id)
        return number

    async def add_shards(self, token: FencingToken, run: Run, shards: Sequence[Shard]) -> bool:
        columns = {
            "shards": [shard.number for shard in shards],
            "task_indexes": [shard.task_index for shard in shards],
            "rollouts": [shard.rollout for shard in shards],
            "samples": [_array_literal(shard.samples) for shard in shards],
        }

        async def add(transaction: PostgresTransaction) -> bool:
            if await transaction.fetchval("lock_running_run", run_id=run.run_id, epoch=run.epoch) is None:
                return False
            await transaction.execute("add_shards", run_id=run.run_id, epoch=run.epoch, **columns)
            return True

        return await run_as_leader(self._session, token, add)

    async def mark_planned(self, token: FencingToken, run: Run, plan: PlanRecord) -> bool:
        async def mark(transaction: PostgresTransaction) -> bool:
            marked = await transaction.fetchval(
                "mark_planned",
                run_id=run.run_id,
                epoch=run.epoch,
                total=plan.total,
                environment=json.dumps(plan.environment),
                reused_answers=plan.reused_answers,
            )
            if marked is None:
                return False
            # A planning that was interrupted after its commit is repeated, and then stores the same tasks.
            await transaction.execute("delete_tasks", run_id=run.run_id)
            await transaction.executemany(
                "add_task",
                [
                    {"run_id": run.run_id, "task_index": index, **task_values(task)}
                    for index, task in enumerate(plan.tasks)
                ],
            )
            return True

        return await run_as_leader(self._session, token, mark)

    async def planned(self, run: Run, after: int, limit: int) -> Sequence[Shard]:
        rows = await self._session.fetch(
            "list_planned_shards", run_id=run.run_id, epoch=run.epoch, after_shard=after, limit=limit
        )
        return _shards(rows)

    async def dispatched(self, run: Run) -> Sequence[Shard]:
        return _shards(
            await self._session.fetch("list_dispatched_shards", run_id=run.run_id, epoch=run.epoch)
        )

    async def move(self, token: FencingToken, run: Run, moves: ShardMoves) -> int:
        """A single statement, so that dispatching costs one round trip; two for a run that shares a bound."""
        values = {
            "fencing_token": token,
            "run_id": run.run_id,
            "epoch": run.epoch,
            "done_shards": list(moves.done),
            "dispatched_shards": [shard.number for shard in moves.dispatched],
            "attempts": [shard.attempt for shard in moves.dispatched],
            "parallel_group": run.order.parallel_group,
            "parallel": run.order.parallel,
        }

        async def move(transaction: PostgresTransaction) -> asyncpg.Record | None:
            await transaction.execute("lock_parallel_group", parallel_group=run.order.parallel_group)
            return await transaction.fetchrow("move_shards", **values)

        if moves.dispatched and run.order.parallel is not None:
            row = await self._session.run(move)
        else:
            row = await self._session.fetchrow("move_shards", **values)
        if row is None or not row["is_leader"]:
            raise LeadershipLost
        return int(row["dispatched"])

    async def room(self, run: Run) -> float:
        if run.order.parallel is None:
            return math.inf
        in_flight: int = await self._session.fetchval(
            "count_bounded_rollouts", parallel_group=run.order.parallel_group, run_id=run.run_id
        )
        return max(run.order.parallel - in_flight, 0)

    async def return_shards(self, token: FencingToken, run: Run, shards: Sequence[Shard]) -> None:
        numbers = [shard.number for shard in shards]
        samples = [_array_literal(shard.samples) for shard in shards]
        await write_as_leader(
            self._session,
            token,
            "return_shards",
            run_id=run.run_id,
            epoch=run.epoch,
            shards=numbers,
            samples=samples,
        )


def _shards(rows: Sequence[asyncpg.Record]) -> list[Shard]:
    return [Shard(*row) for row in rows]


def _array_literal(numbers: Sequence[int]) -> str:
    """An array as text: arrays of different lengths cannot be elements of one array."""
    return "{" + ",".join(map(str, numbers)) + "}"


def task_values(task: PlannedTask) -> Mapping[str, object]:
    """The fields have the names of columns."""
    return {**asdict(task), "generation": to_json(task.generation)}
