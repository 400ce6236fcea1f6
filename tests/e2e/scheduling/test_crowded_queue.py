"""Many users order many runs at once: none is lost, no limit is exceeded, all end."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

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
from tests.harness.stack_harness import SHORT_TIMEOUTS, StackHarness, StackOrder, stack_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

CROWD = Crowd(users_of_class=2, runs_each=3)
MAX_RUNNING = 2
MAX_PENDING = 3
ENVIRONMENT = {
    **SHORT_TIMEOUTS,
    "PROCTOR_SCHEDULER_MAX_RUNNING_RUNS": str(MAX_RUNNING),
    "PROCTOR_SCHEDULER_MAX_PENDING_RUNS_PER_USER": str(MAX_PENDING),
    "PROCTOR_SCHEDULER_MIN_RUN_TIME_SECONDS": "0.2",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    with temporary_state_dir() as state_dir:
        order = StackOrder(rows=MAX_SAMPLES, environment=ENVIRONMENT)
        async with stack_harness(state_dir.parent, order) as stack:
            yield stack


@pytest.mark.thorough
async def test_a_crowd_loses_no_run_and_exceeds_no_limit(stack: StackHarness) -> None:
    watched = Watched()
    async with looking_on(watch_limits(stack, watched)):
        tally = await submit_all(stack, CROWD)
        await stir(stack, CROWD, tally)
        await until_all_end(stack, tally.accepted)
    runs = await ended_runs(stack, CROWD)
    assert_none_is_lost(runs, tally)
    assert len(tally.accepted) + tally.refused == len(CROWD.users) * (CROWD.runs_each + 1)
    # Those who wait behind all others cannot have had room for one more.
    assert tally.refused >= CROWD.users_of_class
    assert tally.pauses == tally.resumes > 0
    assert watched.looks > 50
    assert (watched.most_running, watched.most_new) == (MAX_RUNNING, MAX_PENDING)
    # What a run asked before it was paused or gave its place away is not asked again.
    stats = await stack.model_server.stats()
    asked_in_vain = stats["requests"] - sum(run.recorded for run in runs)
    assert asked_in_vain == 0 or (tally.cancels and asked_in_vain <= tally.cancels * MAX_SAMPLES)
