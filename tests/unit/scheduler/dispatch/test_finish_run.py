"""Once a run is being summed up nothing stops it: what results says of it is what the scheduler says."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from proctor.values.priority import Priority
from proctor.values.run import RunCounts, RunId, RunState
from services.common.errors import DomainError, ErrorKind, RemoteError
from services.scheduler.runs.lifecycle.errors import RunAlreadyFinished, RunNotPausable
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.limits.queue_limits import LimitChanges
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order
from tests.fakes.scheduler.surroundings import InMemoryRecord

AWAY = RemoteError(ErrorKind.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE", "away", {})
BROKEN = RemoteError(ErrorKind.INTERNAL, "INTERNAL", "a fault", {})


class LosingRecord(InMemoryRecord):
    """Closes the run, and then its answer is lost."""

    lost: DomainError | None = AWAY

    async def close_run(self, run: Run, state: RunState, *, allow_partial: bool) -> RunCounts | None:
        counts = await super().close_run(run, state, allow_partial=allow_partial)
        if self.lost:
            raise self.lost
        return counts


async def cancel(harness: SchedulerHarness, run_id: RunId) -> None:
    with pytest.raises(RunAlreadyFinished, match="is already being summed up; only a run"):
        await harness.cancelling.cancel(run_id)


async def pause(harness: SchedulerHarness, run_id: RunId) -> None:
    with pytest.raises(RunNotPausable, match="is being summed up; only a run"):
        await harness.pausing.pause(run_id)


async def overtake(harness: SchedulerHarness, run_id: RunId) -> None:
    await harness.runs.limits.change(LimitChanges(max_running=1, min_run_time=timedelta()))
    urgent = await harness.submit(toy_order(priority=Priority.HIGH))
    await harness.admit()
    assert (await harness.runs.get(urgent.run_id)).state is RunState.PENDING
    assert (await harness.runs.get(run_id)).state is RunState.RUNNING


async def be_late(harness: SchedulerHarness, run_id: RunId) -> None:
    deadline = (await harness.runs.get(run_id)).deadline
    assert deadline is not None
    harness.clock.seconds += (deadline - harness.clock.now()).total_seconds() + 1


async def lead_anew(harness: SchedulerHarness, _: RunId) -> None:
    harness.fencing_token = harness.runs.begin_term()


@pytest.mark.parametrize("strike", [cancel, pause, overtake, be_late, lead_anew])
async def test_run_that_results_has_closed_ends_as_it_was_closed(
    strike: Callable[[SchedulerHarness, RunId], Awaitable[None]],
) -> None:
    record = LosingRecord()
    harness = SchedulerHarness(record=record)
    run, driver = await harness.start(toy_order(limit=3, priority=Priority.LOW))
    await harness.advance(driver, 3)
    await harness.work(run.run_id)
    for _ in range(3):
        with pytest.raises(RemoteError, match="away"):
            await harness.advance(driver)
    assert (await harness.showing.show(run.run_id)).progress.current_step == "summarising"
    await strike(harness, run.run_id)
    record.lost = None
    assert await harness.advance(harness.driver(run.run_id), 3)
    ended = await harness.runs.get(run.run_id)
    assert (ended.state, ended.is_over, ended.step) == (RunState.COMPLETED, True, "")
    assert record.records[run.run_id].state is RunState.COMPLETED


async def test_run_that_lacked_samples_when_it_was_closed_can_be_cancelled_again() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start(toy_order(limit=3))
    await harness.advance(driver, 3)
    await harness.work(run.run_id)
    lost = harness.record.records[run.run_id].outcomes.popitem()
    await harness.advance(driver)
    assert lost
    assert not (await harness.runs.get(run.run_id)).is_closing
    await harness.cancelling.cancel(run.run_id)
    assert await harness.advance(driver, 3)
    assert harness.record.records[run.run_id].state is RunState.CANCELLED


async def test_run_that_cannot_be_summed_up_gives_its_place_back() -> None:
    record = LosingRecord()
    record.lost = BROKEN
    harness = SchedulerHarness(record=record)
    run, driver = await harness.start(toy_order(limit=3))
    await harness.advance(driver, 3)
    await harness.work(run.run_id)
    for _ in range(harness.tools.timings.unexpected_failures - 1):
        with pytest.raises(RemoteError, match="a fault"):
            await harness.advance(driver)
    await harness.advance(driver)
    failed = await harness.runs.get(run.run_id)
    assert failed.state is RunState.FAILED
    assert failed.error is not None
    assert failed.error.message.startswith("Something went wrong while the run was summed up, 10 times (in")
