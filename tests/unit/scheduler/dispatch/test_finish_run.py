"""Once a run is being summed up nothing stops it: what results says of it is what the scheduler says."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from services.common.errors import DomainError, ErrorKind, RemoteError
from services.scheduler.progress.run_counts import RunCounts
from services.scheduler.runs.lifecycle.errors import RunAlreadyFinished, RunNotPausable
from services.scheduler.runs.lifecycle.run import Run, RunId, RunState
from services.scheduler.runs.limits.queue_limits import LimitChanges
from services.scheduler.runs.orders.run_order import Priority
from tests.fakes.scheduler_stand import SchedulerStand, toy_order
from tests.fakes.scheduler_world import InMemoryRecord

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


async def cancel(stand: SchedulerStand, run_id: RunId) -> None:
    with pytest.raises(RunAlreadyFinished, match="is already being summed up; only a run"):
        await stand.cancelling.cancel(run_id)


async def pause(stand: SchedulerStand, run_id: RunId) -> None:
    with pytest.raises(RunNotPausable, match="is being summed up; only a run"):
        await stand.pausing.pause(run_id)


async def overtake(stand: SchedulerStand, run_id: RunId) -> None:
    await stand.runs.limits.change(LimitChanges(max_running=1, min_run_time=timedelta()))
    urgent = await stand.submit(toy_order(priority=Priority.HIGH))
    await stand.admit()
    assert (await stand.runs.get(urgent.run_id)).state is RunState.PENDING
    assert (await stand.runs.get(run_id)).state is RunState.RUNNING


async def be_late(stand: SchedulerStand, run_id: RunId) -> None:
    deadline = (await stand.runs.get(run_id)).deadline
    assert deadline is not None
    stand.clock.seconds += (deadline - stand.clock.now()).total_seconds() + 1


async def lead_anew(stand: SchedulerStand, _: RunId) -> None:
    stand.fencing_token = stand.runs.begin_term()


@pytest.mark.parametrize("strike", [cancel, pause, overtake, be_late, lead_anew])
async def test_run_that_results_has_closed_ends_as_it_was_closed(
    strike: Callable[[SchedulerStand, RunId], Awaitable[None]],
) -> None:
    record = LosingRecord()
    stand = SchedulerStand(record=record)
    run, driver = await stand.start(toy_order(limit=3, priority=Priority.LOW))
    await stand.advance(driver, 3)
    await stand.work(run.run_id)
    for _ in range(3):
        with pytest.raises(RemoteError, match="away"):
            await stand.advance(driver)
    assert (await stand.showing.show(run.run_id)).progress.current_step == "summarising"
    await strike(stand, run.run_id)
    record.lost = None
    assert await stand.advance(stand.driver(run.run_id), 3)
    ended = await stand.runs.get(run.run_id)
    assert (ended.state, ended.is_over, ended.step) == (RunState.COMPLETED, True, "")
    assert record.records[run.run_id].state is RunState.COMPLETED


async def test_run_that_lacked_samples_when_it_was_closed_can_be_cancelled_again() -> None:
    stand = SchedulerStand()
    run, driver = await stand.start(toy_order(limit=3))
    await stand.advance(driver, 3)
    await stand.work(run.run_id)
    lost = stand.record.records[run.run_id].outcomes.popitem()
    await stand.advance(driver)
    assert lost
    assert not (await stand.runs.get(run.run_id)).is_closing
    await stand.cancelling.cancel(run.run_id)
    assert await stand.advance(driver, 3)
    assert stand.record.records[run.run_id].state is RunState.CANCELLED


async def test_run_that_cannot_be_summed_up_gives_its_place_back() -> None:
    record = LosingRecord()
    record.lost = BROKEN
    stand = SchedulerStand(record=record)
    run, driver = await stand.start(toy_order(limit=3))
    await stand.advance(driver, 3)
    await stand.work(run.run_id)
    for _ in range(stand.tools.timings.unforeseen_failures - 1):
        with pytest.raises(RemoteError, match="a fault"):
            await stand.advance(driver)
    await stand.advance(driver)
    failed = await stand.runs.get(run.run_id)
    assert failed.state is RunState.FAILED
    assert failed.error is not None
    assert failed.error.message.startswith("Something went wrong while the run was summed up, 10 times (in")
