"""A crowd before two schedulers, each of which is killed in turn: one of them led."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from proctor.stack.supervision.child import SupervisedChild
from tests.chaos.faults.stack_faults import kill_child
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.crowded_queue import (
    MAX_SAMPLES,
    Crowd,
    Watched,
    assert_none_is_lost,
    ended_runs,
    looking_on,
    stir,
    submit_all,
    until_all_end,
    watch_limits,
)
from tests.harness.replicas import replica
from tests.harness.stack_harness import SHORT_TIMEOUTS, StackHarness, StackOrder, stack_harness

CROWD = Crowd(users_of_class=2, runs_each=3)
MAX_RUNNING = 3
ENVIRONMENT = {
    **SHORT_TIMEOUTS,
    "PROCTOR_SCHEDULER_MAX_PENDING_RUNS_PER_USER": str(CROWD.runs_each),
    "PROCTOR_SCHEDULER_MIN_RUN_TIME_SECONDS": "0.5",
}


@asynccontextmanager
async def crowded_stack() -> AsyncIterator[StackHarness]:
    with temporary_state_dir() as state_dir:
        order = StackOrder(rows=MAX_SAMPLES, environment=ENVIRONMENT)
        async with stack_harness(state_dir.parent, order) as stack:
            yield stack


@pytest.mark.thorough
async def test_a_crowd_outlives_the_leader() -> None:
    watched = Watched()
    async with crowded_stack() as stack, replica(stack, "scheduler") as second:
        schedulers = (stack.stack.child("scheduler"), second)
        terms = await number(stack, "SELECT fencing_token FROM scheduler.leadership")
        async with looking_on(watch_limits(stack, watched)):
            tally = await submit_all(stack, CROWD)
            async with asyncio.TaskGroup() as group:
                group.create_task(stir(stack, CROWD, tally))
                group.create_task(kill_one_after_another(stack, schedulers, len(tally.accepted)))
            await until_all_end(stack, tally.accepted)
        assert await number(stack, "SELECT fencing_token FROM scheduler.leadership") > terms
        assert_none_is_lost(await ended_runs(stack, CROWD), tally)
    assert (watched.most_running, watched.most_new) == (MAX_RUNNING, CROWD.runs_each)


async def kill_one_after_another(
    stack: StackHarness, schedulers: Sequence[SupervisedChild], runs: int
) -> None:
    """One after a fifth of the runs, the other after two."""
    for fifths, scheduler in enumerate(schedulers, 1):

        async def is_time(ended: int = fifths * runs // 5) -> bool:
            return await number(stack, "SELECT count(*) FROM scheduler.runs WHERE is_closed") >= ended

        await eventually(is_time, f"{fifths} fifths of the runs have ended", 60)
        await kill_child(scheduler)


async def number(stack: StackHarness, query: str) -> int:
    async with stack.database() as database:
        return int(await database.fetchval(query))
