"""Tasks and shards of planned runs in Postgres."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from services.common.postgres import load_queries
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.leadership.postgres import run_as_leader
from services.scheduler.planning.ports import PlanRecord
from services.scheduler.planning.shard import Shard
from services.scheduler.postgres_sessions import Connection, Sessions
from services.scheduler.runs.lifecycle.json_runs import facts_to_json, generation_to_json
from services.scheduler.runs.lifecycle.planned_task import PlannedTask
from services.scheduler.runs.lifecycle.run import Run

QUERIES = load_queries(Path(__file__).with_name("queries.sql"))


class PostgresPlans:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def delete_shards(self, token: FencingToken, run: Run) -> None:
        await run_as_leader(
            self._sessions,
            token,
            lambda connection: connection.execute(QUERIES["delete_shards"], run.run_id, run.epoch),
        )

    async def next_shard_number(self, run: Run) -> int:
        number: int = await self._sessions.fetchval(QUERIES["next_shard_number"], run.run_id)
        return number

    async def add_shards(self, token: FencingToken, run: Run, shards: Sequence[Shard]) -> bool:
        columns = (
            [shard.number for shard in shards],
            [shard.task_index for shard in shards],
            [shard.rollout for shard in shards],
            [array_literal(shard.samples) for shard in shards],
        )

        async def add(connection: Connection) -> bool:
            if await connection.fetchval(QUERIES["lock_running_run"], run.run_id, run.epoch) is None:
                return False
            await connection.execute(QUERIES["add_shards"], run.run_id, run.epoch, *columns)
            return True

        return await run_as_leader(self._sessions, token, add)

    async def mark_planned(self, token: FencingToken, run: Run, plan: PlanRecord) -> bool:
        async def mark(connection: Connection) -> bool:
            environment = facts_to_json(plan.environment)
            values = (run.run_id, run.epoch, plan.total, environment, plan.reused_answers)
            if await connection.fetchval(QUERIES["mark_planned"], *values) is None:
                return False
            await connection.execute(QUERIES["delete_tasks"], run.run_id)
            await connection.executemany(
                QUERIES["add_task"],
                [(run.run_id, index, *_task_values(task)) for index, task in enumerate(plan.tasks)],
            )
            return True

        return await run_as_leader(self._sessions, token, mark)


def array_literal(numbers: Sequence[int]) -> str:
    """An array as text: arrays of different lengths cannot be elements of one array."""
    return "{" + ",".join(map(str, numbers)) + "}"


def _task_values(task: PlannedTask) -> tuple[object, ...]:
    """In the order of the fields, which is that of the query's parameters."""
    return (*list(asdict(task).values())[:-1], generation_to_json(task.generation))
