"""Completion windows: over what waits, is paused or runs; a retry opens a new one."""

from dataclasses import replace
from datetime import timedelta

from services.scheduler.runs.late_run import lateness
from services.scheduler.runs.run import Run, RunState
from tests.fakes.scheduler_stand import SchedulerStand, toy_order
from tests.fakes.scheduler_stores import new_run

DAY = 24 * 3600


def windowed(run: Run, seconds: int = DAY) -> Run:
    order = replace(run.order, completion_window_seconds=seconds)
    return replace(run, order=order, expires_at=run.created_at + timedelta(seconds=seconds))


async def started(stand: SchedulerStand) -> Run:
    """With a window of an hour, which is shorter than the limit of running."""
    submitted = await stand.submit(toy_order(completion_window_seconds=3600))
    stand.runs.runs[submitted.run_id] = windowed(submitted, 3600)
    await stand.admit()
    return await stand.runs.get(submitted.run_id)


def test_window_is_named_and_a_retry_opens_a_new_one() -> None:
    run = windowed(new_run())
    assert lateness(run, run.created_at + timedelta(seconds=DAY - 1)) is None
    late = lateness(run, run.created_at + timedelta(seconds=DAY))
    assert late is not None
    assert late.reason == "DEADLINE_REACHED"
    assert late.message == (
        "Resource limits exceeded (time): the run took longer than its completion window of "
        "1 day, 0:00:00 (hours:minutes:seconds), waiting included. What was recorded stays; a retry opens a "
        "new window and asks the rest."
    )


def test_without_a_window_the_limit_of_running_is_named() -> None:
    run = new_run()
    admitted_at = run.created_at + timedelta(hours=5)
    running = replace(
        run, state=RunState.RUNNING, admitted_at=admitted_at, deadline=admitted_at + timedelta(hours=3)
    )
    assert lateness(run, run.created_at + timedelta(days=9)) is None
    late = lateness(running, admitted_at + timedelta(hours=3))
    assert late is not None
    assert "longer than 3:00:00 (hours:minutes:seconds)." in late.message


async def test_run_with_a_window_runs_until_it_closes_whatever_the_limit_of_running_is() -> None:
    stand = SchedulerStand()
    run = await started(stand)
    assert run.deadline == run.expires_at
    driver = stand.driver(run.run_id)
    await stand.advance(driver, 2)
    stand.clock.seconds += 3600
    failed = await stand.finish(run.run_id, driver)
    assert failed.error is not None
    assert failed.error.reason == "DEADLINE_REACHED"
    assert "completion window of 1:00:00" in failed.error.message
    assert stand.record.closings == [(run.run_id, 1, True)]


async def test_retry_opens_a_new_window() -> None:
    stand = SchedulerStand()
    run = await started(stand)
    stand.clock.seconds += 3600
    await stand.finish(run.run_id, stand.driver(run.run_id))
    pending = await stand.retrying.retry(run.run_id)
    assert pending.expires_at == stand.clock.now() + timedelta(seconds=3600)
