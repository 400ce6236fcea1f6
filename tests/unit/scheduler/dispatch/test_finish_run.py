"""A run that waits for its figures has no slot and can be cancelled; both services agree on its end."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from proctor.values.priority import Priority
from proctor.values.run import RunCounts, RunId, RunState
from proctor.values.usage import TokenUsage
from services.common.errors import DomainError, ErrorKind, RemoteError
from services.scheduler.limits.queue_limits import LimitChanges
from services.scheduler.planning.ports import ClosingProgress
from services.scheduler.runs.lifecycle.errors import RunNotPausable
from services.scheduler.runs.lifecycle.run import Run
from tests.fakes.callers import OPERATOR, by
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order
from tests.fakes.scheduler.surroundings import InMemoryRecord

AWAY = RemoteError(ErrorKind.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE", "away", {})
BROKEN = RemoteError(ErrorKind.INTERNAL, "INTERNAL", "a fault", {})


class LosingRecord(InMemoryRecord):
    """Closes the run, and then its answer is lost."""

    lost: DomainError | None = AWAY

    async def close_run(
        self, run: Run, state: RunState, *, allow_partial: bool, unscored: TokenUsage
    ) -> RunCounts | ClosingProgress | None:
        counts = await super().close_run(run, state, allow_partial=allow_partial, unscored=unscored)
        if self.lost:
            raise self.lost
        return counts


async def pause(harness: SchedulerHarness, run_id: RunId) -> None:
    with pytest.raises(RunNotPausable) as refused:
        await harness.changing.pause(run_id, OPERATOR)
    assert refused.value.facts["state"] == "closing"


async def overtake(harness: SchedulerHarness, run_id: RunId) -> None:
    await harness.runs.limits.change(LimitChanges(max_running_runs=1, min_run_time=timedelta()), by())
    urgent = await harness.submit(toy_order(priority=Priority.HIGH))
    await harness.admit()
    assert (await harness.runs.get(urgent.run_id)).state is RunState.RUNNING
    assert (await harness.runs.get(run_id)).state is RunState.RUNNING


async def be_late(harness: SchedulerHarness, run_id: RunId) -> None:
    deadline = (await harness.runs.get(run_id)).deadline
    assert deadline is not None
    harness.clock.seconds += (deadline - harness.clock.now()).total_seconds() + 1


async def lead_anew(harness: SchedulerHarness, _: RunId) -> None:
    harness.fencing_token = harness.runs.begin_term()


@pytest.mark.parametrize("strike", [pause, overtake, be_late, lead_anew])
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
    assert (await harness.showing.show(run.run_id)).progress.phase == "closing"
    await strike(harness, run.run_id)
    record.lost = None
    assert await harness.advance(harness.driver(run.run_id), 3)
    ended = await harness.runs.get(run.run_id)
    assert (ended.state, ended.is_closed, ended.phase) == (RunState.COMPLETED, True, "")
    assert record.records[run.run_id].state is RunState.COMPLETED


async def test_run_that_is_cancelled_after_results_has_closed_it_is_cancelled_in_both() -> None:
    record = LosingRecord()
    harness = SchedulerHarness(record=record)
    run, driver = await harness.start(toy_order(limit=3))
    await harness.advance(driver, 3)
    await harness.work(run.run_id)
    with pytest.raises(RemoteError, match="away"):
        await harness.advance(driver)
    assert record.records[run.run_id].state is RunState.COMPLETED
    assert (await harness.changing.cancel(run.run_id, OPERATOR)).state is RunState.CANCELLED
    record.lost = None
    assert await harness.advance(harness.driver(run.run_id), 3)
    assert (await harness.runs.get(run.run_id)).is_closed
    assert record.records[run.run_id].state is RunState.CANCELLED


class SlowRecord(InMemoryRecord):
    """Computes figures for as many calls as there are shares."""

    def __init__(self, *shares: float) -> None:
        super().__init__()
        self.shares = list(shares)
        self.given_up: list[float] = []

    async def close_run(
        self, run: Run, state: RunState, *, allow_partial: bool, unscored: TokenUsage
    ) -> RunCounts | ClosingProgress | None:
        if state is RunState.CANCELLED:
            # Results gives figures up that it still computes.
            self.given_up, self.shares = self.shares, []
        if self.shares:
            return ClosingProgress(self.shares.pop(0))
        return await super().close_run(run, state, allow_partial=allow_partial, unscored=unscored)


async def test_run_whose_figures_take_long_shows_how_far_they_are_and_leaves_its_slot() -> None:
    harness = SchedulerHarness(record=SlowRecord(0.0, 0.42, 0.97))
    await harness.runs.limits.change(LimitChanges(max_running_runs=1), by())
    run, driver = await harness.start(toy_order(limit=3))
    other = await harness.submit(toy_order())
    await harness.advance(driver, 3)
    await harness.work(run.run_id)
    await harness.advance(driver, 2)
    progress = (await harness.showing.show(run.run_id)).progress
    assert (progress.is_closing, progress.phase) == (True, "closing 42%")
    await harness.admit()
    assert (await harness.runs.get(other.run_id)).state is RunState.RUNNING
    await harness.advance(driver, 2)
    assert (await harness.runs.get(run.run_id)).state is RunState.COMPLETED


async def test_run_that_is_cancelled_while_its_figures_are_computed_is_closed_as_cancelled() -> None:
    record = SlowRecord(0.1, 0.2, 0.3)
    harness = SchedulerHarness(record=record)
    run, driver = await harness.start(toy_order(limit=3))
    await harness.advance(driver, 3)
    await harness.work(run.run_id)
    await harness.advance(driver)
    await harness.changing.cancel(run.run_id, OPERATOR)
    assert await harness.advance(driver, 2)
    assert record.given_up == [0.2, 0.3]
    ended = await harness.runs.get(run.run_id)
    assert (ended.state, ended.is_closed) == (RunState.CANCELLED, True)
    assert ended.final_counts is not None
    assert ended.final_counts.recorded == ended.total == 6
    assert record.records[run.run_id].state is RunState.CANCELLED
    assert (await harness.changing.retry(run.run_id, OPERATOR)).epoch == 2


async def test_run_that_results_can_never_close_is_closed_without_a_summary_and_can_be_retried() -> None:
    record = LosingRecord()
    record.lost = BROKEN
    harness = SchedulerHarness(record=record)
    run, driver = await harness.start(toy_order(limit=3))
    await harness.advance(driver, 3)
    await harness.work(run.run_id)
    for _ in range(harness.tools.timings.unexpected_failures - 1):
        with pytest.raises(RemoteError, match="a fault"):
            await harness.advance(driver)
    assert await harness.advance(driver, 3)
    ended = await harness.runs.get(run.run_id)
    assert (ended.state, ended.is_closed, ended.final_counts) == (RunState.FAILED, True, None)
    assert (await harness.changing.retry(run.run_id, OPERATOR)).epoch == 2


async def test_run_that_lacked_samples_when_it_was_closed_can_be_cancelled_again() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start(toy_order(limit=3))
    await harness.advance(driver, 3)
    await harness.work(run.run_id)
    lost = harness.record.records[run.run_id].outcomes.popitem()
    await harness.advance(driver)
    assert lost
    assert not (await harness.runs.get(run.run_id)).is_closing
    await harness.changing.cancel(run.run_id, OPERATOR)
    assert await harness.advance(driver, 3)
    assert harness.record.records[run.run_id].state is RunState.CANCELLED


async def test_run_that_cannot_be_closed_gives_its_slot_back() -> None:
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
    assert failed.error.message.startswith(
        "Something went wrong while the run was being closed, 10 times (in"
    )
