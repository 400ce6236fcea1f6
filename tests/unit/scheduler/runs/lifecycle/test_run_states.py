"""Which state may follow which.
Completion windows: over what waits, is paused or runs; a retry opens a new one.
"""

from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from proctor.values.run import FINAL_STATES, RunState
from services.scheduler.runs.lifecycle.errors import RunAlreadyFinished, RunNotRetryable
from services.scheduler.runs.lifecycle.run import Run, deadline_error, may_become, states_before
from tests.fakes.callers import OPERATOR
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order
from tests.fakes.scheduler.stores import new_run


def test_nothing_follows_completed() -> None:
    assert not any(may_become(RunState.COMPLETED, state) for state in RunState)


def test_only_a_retry_leaves_a_final_state() -> None:
    ways = [(a, b) for a, b in product(FINAL_STATES, RunState) if may_become(a, b)]
    assert sorted(ways) == [
        (RunState.FAILED, RunState.PENDING),
        (RunState.CANCELLED, RunState.PENDING),
    ]


def test_states_before_are_those_that_may_become_it() -> None:
    assert set(states_before(RunState.CANCELLED)) == {RunState.PENDING, RunState.RUNNING, RunState.PAUSED}
    assert set(states_before(RunState.COMPLETED)) == {RunState.RUNNING}


async def test_cancel_can_be_repeated_until_the_run_is_closed() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    first = await harness.changing.cancel(run.run_id, OPERATOR)
    harness.clock.seconds += 1
    assert await harness.changing.cancel(run.run_id, OPERATOR) == first
    assert await harness.advance(driver, 10)
    with pytest.raises(RunAlreadyFinished) as refused:
        await harness.changing.cancel(run.run_id, OPERATOR)
    assert refused.value.facts["state"] == "cancelled"


async def test_retry_can_be_repeated_while_it_waits_or_runs() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    with pytest.raises(RunNotRetryable, match="is running"):
        await harness.changing.retry(run.run_id, OPERATOR)
    await harness.changing.cancel(run.run_id, OPERATOR)
    assert await harness.advance(driver, 10)
    pending = await harness.changing.retry(run.run_id, OPERATOR)
    harness.clock.seconds += 1
    assert await harness.changing.retry(run.run_id, OPERATOR) == pending
    await harness.admit()
    again = await harness.changing.retry(run.run_id, OPERATOR)
    assert (again.state, again.epoch) == (RunState.RUNNING, 2)


async def test_finished_run_cannot_be_cancelled() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    await harness.finish(run.run_id, driver)
    with pytest.raises(RunAlreadyFinished) as refused:
        await harness.changing.cancel(run.run_id, OPERATOR)
    assert refused.value.facts["state"] == "completed"


DAY = 24 * 3600


def windowed(run: Run, seconds: int = DAY) -> Run:
    order = replace(run.order, completion_window_seconds=seconds)
    return replace(run, order=order, expires_at=run.created_at + timedelta(seconds=seconds))


async def started(harness: SchedulerHarness) -> Run:
    """With a window of an hour, which is shorter than the limit of running."""
    submitted = await harness.submit(toy_order(completion_window_seconds=3600))
    harness.runs.runs[submitted.run_id] = windowed(submitted, 3600)
    await harness.admit()
    return await harness.runs.get(submitted.run_id)


def test_window_is_named_and_a_retry_opens_a_new_one() -> None:
    run = windowed(new_run())
    assert deadline_error(run, run.created_at + timedelta(seconds=DAY - 1)) is None
    late = deadline_error(run, run.created_at + timedelta(seconds=DAY))
    assert late is not None
    assert late.reason == "DEADLINE_REACHED"
    assert "completion window of 1 day, 0:00:00" in late.message


def test_without_a_window_the_limit_of_running_is_named() -> None:
    run = new_run()
    admitted_at = run.created_at + timedelta(hours=5)
    running = replace(
        run, state=RunState.RUNNING, admitted_at=admitted_at, deadline=admitted_at + timedelta(hours=3)
    )
    assert deadline_error(run, run.created_at + timedelta(days=9)) is None
    late = deadline_error(running, admitted_at + timedelta(hours=3))
    assert late is not None
    assert "longer than 3:00:00 (hours:minutes:seconds)." in late.message


async def test_run_with_a_window_runs_until_it_closes_whatever_the_limit_of_running_is() -> None:
    harness = SchedulerHarness()
    run = await started(harness)
    assert run.deadline == run.expires_at
    driver = harness.driver(run.run_id)
    await harness.advance(driver, 2)
    harness.clock.seconds += 3600
    failed = await harness.finish(run.run_id, driver)
    assert failed.error is not None
    assert failed.error.reason == "DEADLINE_REACHED"
    assert "completion window of 1:00:00" in failed.error.message
    assert harness.record.closings == [(run.run_id, 1, True)]


async def test_retry_opens_a_new_window() -> None:
    harness = SchedulerHarness()
    run = await started(harness)
    harness.clock.seconds += 3600
    await harness.finish(run.run_id, harness.driver(run.run_id))
    pending = await harness.changing.retry(run.run_id, OPERATOR)
    assert pending.expires_at == harness.clock.now() + timedelta(seconds=3600)
