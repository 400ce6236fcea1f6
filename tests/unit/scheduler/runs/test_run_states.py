"""Which state may follow which."""

from itertools import product

import pytest

from services.scheduler.errors import RunAlreadyFinished, RunNotRetryable
from services.scheduler.runs.run import FINAL_STATES, RunState, may_become, states_before
from tests.fakes.scheduler_stand import SchedulerStand


def test_nothing_follows_completed() -> None:
    assert not any(may_become(RunState.COMPLETED, state) for state in RunState)


def test_only_a_retry_leaves_a_final_state() -> None:
    ways = [(a, b) for a, b in product(FINAL_STATES, RunState) if may_become(a, b)]
    assert sorted(ways) == [
        (RunState.CANCELLED, RunState.PENDING),
        (RunState.FAILED, RunState.PENDING),
    ]


def test_states_before_are_those_that_may_become_it() -> None:
    assert set(states_before(RunState.CANCELLED)) == {RunState.PENDING, RunState.RUNNING, RunState.PAUSED}
    assert set(states_before(RunState.COMPLETED)) == {RunState.RUNNING}


async def test_cancel_can_be_repeated_until_the_run_is_summed_up() -> None:
    stand = SchedulerStand()
    run, driver = await stand.start()
    first = await stand.cancelling.cancel(run.run_id)
    stand.clock.seconds += 1
    assert await stand.cancelling.cancel(run.run_id) == first
    assert await stand.advance(driver, 10)
    with pytest.raises(RunAlreadyFinished, match="is already cancelled"):
        await stand.cancelling.cancel(run.run_id)


async def test_retry_can_be_repeated_while_it_waits_or_runs() -> None:
    stand = SchedulerStand()
    run, driver = await stand.start()
    with pytest.raises(RunNotRetryable, match="is running"):
        await stand.retrying.retry(run.run_id)
    await stand.cancelling.cancel(run.run_id)
    assert await stand.advance(driver, 10)
    pending = await stand.retrying.retry(run.run_id)
    stand.clock.seconds += 1
    assert await stand.retrying.retry(run.run_id) == pending
    await stand.admit()
    again = await stand.retrying.retry(run.run_id)
    assert (again.state, again.epoch) == (RunState.RUNNING, 2)


async def test_finished_run_cannot_be_cancelled() -> None:
    stand = SchedulerStand()
    run, driver = await stand.start()
    await stand.finish(run.run_id, driver)
    with pytest.raises(RunAlreadyFinished, match="is already completed"):
        await stand.cancelling.cancel(run.run_id)
