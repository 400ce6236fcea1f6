"""The scheduler's stores, in memory or in Postgres, for tests of what both promise."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import uuid4

import asyncpg

from proctor.values.run import RunId
from proctor.values.scoring import ScoringMethod
from services.common.postgres import PostgresSession
from services.scheduler.dispatch.lead_runs import SlotStore
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.limits.ports import LimitStore
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.limits.queue_limits import LimitChanges
from services.scheduler.planning.ports import ShardStore
from services.scheduler.planning.postgres import PostgresShards
from services.scheduler.postgres import QUERIES
from services.scheduler.runs.admission.forecast_queue import QueueStore
from services.scheduler.runs.admission.postgres import PostgresQueue, PostgresSlots
from services.scheduler.runs.lifecycle.ports import LedRunStore, RunStore
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from services.scheduler.runs.lifecycle.postgres_led import PostgresLedRuns
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.runs.reads.ports import RunLists
from services.scheduler.runs.reads.postgres import PostgresRunLists
from tests.fakes.callers import by
from tests.fakes.scheduler.memory.queue import InMemoryQueue
from tests.fakes.scheduler.memory.runs import InMemoryRuns
from tests.fakes.scheduler.surroundings import START
from tests.fakes.scheduler_rules import queue_limits

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Stores:
    runs: RunStore
    lists: RunLists
    led: LedRunStore
    slots: SlotStore
    shards: ShardStore
    limits: LimitStore
    queue: QueueStore
    deleted: RunStore
    begin_term: Callable[[], Awaitable[FencingToken]]


def stores_in_memory() -> Stores:
    memory = InMemoryRuns()

    async def begin() -> FencingToken:
        return memory.begin_term()

    return Stores(
        runs=memory,
        lists=memory,
        led=memory,
        slots=memory,
        shards=memory,
        limits=memory.limits,
        queue=InMemoryQueue(memory),
        deleted=memory,
        begin_term=begin,
    )


async def empty_stores(pool: asyncpg.Pool) -> Stores:
    """In Postgres, with nothing in them."""
    await pool.execute("TRUNCATE runs CASCADE; TRUNCATE user_priorities, user_admissions, deleted_runs")
    await pool.execute("DELETE FROM limits; INSERT INTO limits DEFAULT VALUES")
    sessions = PostgresSession(pool, QUERIES)
    limits = PostgresLimits(sessions, queue_limits())

    async def begin() -> FencingToken:
        return FencingToken(await sessions.fetchval("begin_term"))

    runs = PostgresRuns(sessions, limits)
    return Stores(
        runs=runs,
        lists=PostgresRunLists(sessions),
        led=PostgresLedRuns(sessions),
        slots=PostgresSlots(sessions, limits),
        shards=PostgresShards(sessions),
        limits=limits,
        queue=PostgresQueue(sessions),
        deleted=runs,
        begin_term=begin,
    )


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


async def admit(stores: Stores, token: FencingToken, limit: int = 3) -> list[RunId]:
    await stores.limits.change(LimitChanges(max_running_runs=limit), by())
    return list((await stores.slots.admit(token, START + HOUR)).admitted)
