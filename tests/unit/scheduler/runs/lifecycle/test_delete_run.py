"""Deleting a run: only a closed one; results hears of it, if need be later."""

import pytest

from services.common.errors import DependencyUnavailable, ErrorKind, RemoteError, RunNotFound
from services.scheduler.runs.lifecycle.errors import RunNotClosed, RunStillActive
from tests.fakes.callers import OPERATOR
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness

AWAY = RemoteError(ErrorKind.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE", "results does not answer", {})


async def test_deleted_run_is_gone_here_and_in_results() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    await harness.finish(run.run_id, driver)
    await harness.deleting.delete(run.run_id, OPERATOR)
    with pytest.raises(RunNotFound):
        await harness.showing.show(run.run_id)
    assert run.run_id not in harness.record.records
    with pytest.raises(RunNotFound):
        await harness.deleting.delete(run.run_id, OPERATOR)


async def test_artifacts_are_deleted_by_the_sweep_and_not_by_the_call() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    await harness.finish(run.run_id, driver)
    await harness.deleting.delete(run.run_id, OPERATOR)
    assert harness.artifacts.deleted == []
    harness.clock.seconds += 60
    await harness.deleting.sweep()
    assert (harness.artifacts.deleted, harness.runs.deletions) == ([run.run_id], {})


async def test_run_that_goes_on_is_not_deleted() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    with pytest.raises(RunStillActive) as refused:
        await harness.deleting.delete(run.run_id, OPERATOR)
    assert refused.value.facts["state"] == "running"
    await harness.advance(driver, 2)
    await harness.changing.cancel(run.run_id, OPERATOR)
    with pytest.raises(RunNotClosed) as unclosed:
        await harness.deleting.delete(run.run_id, OPERATOR)
    assert unclosed.value.facts["state"] == "cancelled"
    await harness.finish(run.run_id, driver)
    await harness.deleting.delete(run.run_id, OPERATOR)


@pytest.mark.parametrize("refusal", [AWAY, DependencyUnavailable(dependency="results")])
async def test_results_that_does_not_answer_is_reported_later(refusal: Exception) -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    await harness.finish(run.run_id, driver)
    harness.record.deletion_refusal = refusal
    await harness.deleting.delete(run.run_id, OPERATOR)
    assert run.run_id in harness.record.records
    harness.clock.seconds += 60
    harness.record.deletion_refusal = None
    await harness.deleting.sweep()
    assert run.run_id not in harness.record.records
    assert harness.runs.deletions == {}


async def test_the_sweep_goes_on_behind_a_run_that_cannot_be_deleted() -> None:
    harness = SchedulerHarness()
    runs = []
    for _ in range(3):
        run, driver = await harness.start()
        runs.append(await harness.finish(run.run_id, driver))
    harness.record.deletion_refusal = AWAY
    for run in runs:
        await harness.deleting.delete(run.run_id, OPERATOR)
    harness.record.deletion_refusal = None
    stuck = runs[0].run_id
    harness.record.undeletable.add(stuck)
    harness.clock.seconds += 60
    await harness.deleting.sweep()
    assert set(harness.record.records) == {stuck}
    # It waits behind those that are deleted from now on.
    assert harness.runs.deletions == {stuck: harness.clock.now()}
