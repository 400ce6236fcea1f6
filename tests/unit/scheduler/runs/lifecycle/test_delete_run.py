"""Deleting a run: only one that is over; results hears of it, if need be later."""

import pytest

from services.common.errors import DependencyUnavailable, ErrorKind, RemoteError
from services.scheduler.runs.lifecycle.errors import RunNotFound, RunNotOver
from tests.fakes.scheduler_stand import SchedulerStand

AWAY = RemoteError(ErrorKind.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE", "results does not answer", {})


async def test_deleted_run_is_gone_here_and_in_results() -> None:
    stand = SchedulerStand()
    run, driver = await stand.start()
    await stand.finish(run.run_id, driver)
    await stand.deleting.delete(run.run_id)
    with pytest.raises(RunNotFound):
        await stand.showing.show(run.run_id)
    assert run.run_id not in stand.record.records
    assert stand.runs.deletions == {}
    with pytest.raises(RunNotFound):
        await stand.deleting.delete(run.run_id)


async def test_run_that_goes_on_is_not_deleted() -> None:
    stand = SchedulerStand()
    run, driver = await stand.start()
    with pytest.raises(RunNotOver, match="is running, so it cannot be deleted yet"):
        await stand.deleting.delete(run.run_id)
    await stand.advance(driver, 2)
    await stand.cancelling.cancel(run.run_id)
    with pytest.raises(RunNotOver, match="is being summed up"):
        await stand.deleting.delete(run.run_id)
    await stand.finish(run.run_id, driver)
    await stand.deleting.delete(run.run_id)


@pytest.mark.parametrize("refusal", [AWAY, DependencyUnavailable(dependency="results")])
async def test_results_that_does_not_answer_is_told_later(refusal: Exception) -> None:
    stand = SchedulerStand()
    run, driver = await stand.start()
    await stand.finish(run.run_id, driver)
    stand.record.deletion_refusal = refusal
    await stand.deleting.delete(run.run_id)
    assert run.run_id in stand.record.records
    stand.clock.seconds += 60
    stand.record.deletion_refusal = None
    await stand.deleting.sweep()
    assert run.run_id not in stand.record.records
    assert stand.runs.deletions == {}
