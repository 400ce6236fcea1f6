"""The scheduler's stores, in memory or in Postgres, for tests of what both promise."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import uuid4

import asyncpg

from services.scheduler.ports import Fence, LedRunStore, LimitStore, QueueStore, RunStore, ShardStore
from services.scheduler.postgres_sessions import Queries, Sessions
from services.scheduler.runs.ports import DeletedRunStore
from services.scheduler.runs.postgres_deleted_runs import PostgresDeletedRuns
from services.scheduler.runs.postgres_led_runs import PostgresLedRuns
from services.scheduler.runs.postgres_limits import PostgresLimits
from services.scheduler.runs.postgres_queue import PostgresQueue
from services.scheduler.runs.postgres_runs import PostgresRuns
from services.scheduler.runs.queue_limits import LimitChanges, QueueLimits
from services.scheduler.runs.run import Run, RunId
from services.scheduler.runs.run_order import RunOrder, ScoringMethod
from services.scheduler.shards.postgres_shards import PostgresShards
from tests.fakes.in_memory_queue import InMemoryQueue
from tests.fakes.in_memory_runs import InMemoryRuns
from tests.fakes.scheduler_world import START

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Stores:
    runs: RunStore
    led: LedRunStore
    shards: ShardStore
    limits: LimitStore
    queue: QueueStore
    begin_term: Callable[[], Awaitable[Fence]]
    deleted: DeletedRunStore


def stores_in_memory() -> Stores:
    memory = InMemoryRuns()

    async def begin() -> Fence:
        return memory.begin_term()

    return Stores(memory, memory, memory, memory.limits, InMemoryQueue(memory), begin, memory)


async def empty_stores(pool: asyncpg.Pool) -> Stores:
    """In Postgres, with nothing in them."""
    await pool.execute("TRUNCATE runs CASCADE; TRUNCATE user_priorities, user_turns, deleted_runs")
    await pool.execute("DELETE FROM limits; INSERT INTO limits DEFAULT VALUES")
    sessions = Sessions(pool)
    limits = PostgresLimits(sessions, QueueLimits())

    async def begin() -> Fence:
        return Fence(await pool.fetchval(Queries["raise_fence"]))

    runs, led = PostgresRuns(sessions, limits), PostgresLedRuns(sessions, limits)
    deleted = PostgresDeletedRuns(sessions)
    return Stores(runs, led, PostgresShards(sessions), limits, PostgresQueue(sessions), begin, deleted)


def new_run(age: int = 0, user: str = "local", **order: object) -> Run:
    """The higher its age, the later it was ordered."""
    wanted = replace(RunOrder("toy", "openai/fake", project_id=7), **order)  # type: ignore[arg-type]  # names are checked
    return Run(
        run_id=RunId(str(uuid4())),
        order=wanted,
        user=user,
        pool="remote",
        scoring_method=ScoringMethod.GENERATE,
        created_at=START + timedelta(seconds=age),
        environment={"a": "1"},
    )


async def add(stores: Stores, run: Run) -> Run:
    return await stores.runs.add(run, "")


async def admit(stores: Stores, fence: Fence, most: int = 3) -> list[RunId]:
    await stores.limits.change(LimitChanges(max_running=most))
    return list((await stores.led.admit(fence, START + HOUR)).admitted)
