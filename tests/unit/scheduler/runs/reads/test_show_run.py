"""A run as it is shown: its wait, its steps, its speed; and a watch that ends with it."""

import asyncio
import itertools
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from proctor.values.run import RunCounts, RunId, RunKind, RunState, TaskCounts
from proctor.values.usage import TokenUsage
from services.scheduler.runs.reads.run_list import RunFilter
from services.scheduler.runs.reads.run_snapshot import RunSnapshot, whole_speed
from tests.fakes.callers import OPERATOR
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, ready_worker, toy_order
from tests.fakes.scheduler_rules import credit_rule


async def test_pending_run_says_its_position_and_what_holds_it() -> None:
    harness = SchedulerHarness()
    for _ in range(3):
        await harness.submit()
    await harness.admit()
    harness.clock.seconds += 1
    await harness.submit()
    harness.clock.seconds += 1
    last = await harness.submit()
    snapshot = await harness.showing.show(last.run_id)
    assert snapshot.wait is not None
    assert snapshot.wait.position == 2
    assert snapshot.wait.blocked_by == "All 3 slots are busy; 1 run ahead of it"
    assert snapshot.progress.phase == "waiting"


async def test_pending_run_has_a_forecast_where_there_are_earlier_runs() -> None:
    harness = SchedulerHarness()
    first, driver = await harness.start()
    waiting = []
    for _ in range(7):
        harness.clock.seconds += 0.001
        waiting.append(await harness.submit())
    reported = [await _seconds_to_wait(harness, run.run_id) for run in waiting]
    assert reported == [0.0, 0.0, *[None] * 5]
    ended = await harness.finish(first.run_id, driver)
    assert ended.started_at
    assert ended.finished_at
    lasted = (ended.finished_at - ended.started_at).total_seconds()
    by_position = [await _seconds_to_wait(harness, run.run_id) for run in waiting]
    # Three places are free; the next three runs wait for one round, the last for two.
    assert by_position == [0.0] * 3 + [lasted] * 3 + [2 * lasted]


async def test_steps_follow_what_happens() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    assert await _step(harness, run.run_id) == "planning"
    await harness.advance(driver, 2)
    assert await _step(harness, run.run_id) == "running"
    model = run.order.model
    harness.registry.live = [ready_worker(models=(model,), loading_model=model)]
    assert await _step(harness, run.run_id) == f"loading {model}"
    harness.registry.live = []
    assert await _step(harness, run.run_id) == "waiting for a worker of pool remote"
    until = harness.clock.now() + timedelta(seconds=60)
    harness.registry.live = [ready_worker(throttled_servers={"": until})]
    assert await _step(harness, run.run_id) == (
        f"waiting for openai: it throttles requests, and is asked again at {until:%H:%M:%S} UTC"
    )
    harness.registry.live = []
    for other in ("WORK_other", "KV_WORKERS_other"):
        harness.refused_streams[other] = "no space left on device"
    assert await _step(harness, run.run_id) == "waiting for a worker of pool remote"
    harness.refused_streams["OUTCOMES"] = "no space left on device"
    assert await _step(harness, run.run_id) == (
        "waiting for NATS, which refuses OUTCOMES: no space left on device"
    )
    harness.refused_streams.clear()
    harness.registry.live = [ready_worker()]
    await harness.fill_disk(950)
    assert await _step(harness, run.run_id) == (
        "waiting for room: the disk of Postgres is 95.0% full; runs wait until it is below 95%"
    )
    await harness.fill_disk(949)
    assert await _step(harness, run.run_id) == "running"
    await harness.changing.pause(run.run_id, OPERATOR)
    assert await _step(harness, run.run_id) == "paused"
    await harness.changing.resume(run.run_id, OPERATOR)
    await harness.admit()
    await harness.finish(run.run_id, driver)
    assert await _step(harness, run.run_id) == "done"


async def test_progress_has_tasks_speed_and_time_left() -> None:
    harness = SchedulerHarness(rule=credit_rule(min_shards=2, max_shards=2))
    harness.record.tokens_of_sample = TokenUsage(5, 3)
    run, driver = await harness.start()
    await harness.advance(driver, 2)
    harness.clock.seconds += 5
    await harness.work(run.run_id)
    progress = (await harness.showing.show(run.run_id)).progress
    assert [(task.task, task.total) for task in progress.tasks] == [("choose", 100), ("say", 100)]
    assert all(task.is_stand_in for task in progress.tasks)
    assert progress.recorded == 100
    assert (progress.samples_per_second, progress.tokens_per_second) == (20, 60)
    assert (progress.eta_seconds, progress.eta_low_seconds, progress.eta_high_seconds) == (5, 5, 5)


async def test_ended_run_has_the_speed_of_its_whole_time() -> None:
    harness = SchedulerHarness(rule=credit_rule(min_shards=2, max_shards=2))
    harness.record.tokens_of_sample = TokenUsage(5, 3)
    run, driver = await harness.start()
    harness.clock.seconds += 8
    await harness.finish(run.run_id, driver)
    ended = (await harness.showing.show(run.run_id)).run
    assert ended.admitted_at
    assert ended.finished_at
    seconds = (ended.finished_at - ended.admitted_at).total_seconds()
    assert seconds >= 8
    for _ in range(2):
        progress = (await harness.showing.show(run.run_id)).progress
        assert progress.samples_per_second == pytest.approx(200 / seconds)
        assert progress.tokens_per_second == pytest.approx(600 / seconds)
        assert progress.eta_seconds is None
        harness.clock.seconds += 3600
    # Twice the time for as many samples: those that an earlier epoch asked count with its time.
    retried = replace(ended, epoch=2, earlier_seconds=seconds)
    assert whole_speed(retried, RunCounts(2, (TaskCounts("say", 200),)))[0] == pytest.approx(100 / seconds)
    reused = replace(ended, reused_answers=200)
    assert whole_speed(reused, RunCounts(1, (TaskCounts("say", 200),))) == (None, None)


async def test_list_has_progress_and_speed_of_running_runs() -> None:
    harness = SchedulerHarness(rule=credit_rule(min_shards=2, max_shards=2))
    run, driver = await harness.start()
    await harness.advance(driver, 2)
    harness.clock.seconds += 5
    await harness.work(run.run_id)
    [listed] = (await harness.listing.list_page(RunFilter(), 10, None)).snapshots
    assert (listed.progress.recorded, listed.progress.total) == (100, 200)
    assert (listed.progress.samples_per_second, listed.progress.eta_seconds) == (20, 5)
    elsewhere = SchedulerHarness(runs=harness.runs, record=harness.record)
    [unreported] = (await elsewhere.listing.list_page(RunFilter(), 10, None)).snapshots
    assert unreported.progress.recorded == 100


async def test_list_distinguishes_runs_over_suites_from_those_over_data_sets() -> None:
    harness = SchedulerHarness()
    suite = await harness.submit()
    order = toy_order(suite="", dataset_id="ds_1")
    dataset = await harness.runs.add(replace(suite, run_id=RunId(str(uuid4())), order=order), "")

    async def listed(wanted: RunFilter) -> list[RunId]:
        page = await harness.listing.list_page(wanted, 10, None)
        return [snapshot.run.run_id for snapshot in page.snapshots]

    assert await listed(RunFilter(kind=RunKind.SUITE)) == [suite.run_id]
    assert await listed(RunFilter(kind=RunKind.DATASET)) == [dataset.run_id]
    assert await listed(RunFilter(dataset_id="ds_1")) == [dataset.run_id]
    assert await listed(RunFilter(dataset_id="ds_2")) == []


async def test_counts_are_asked_for_where_no_report_was_received() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    await harness.advance(driver, 2)
    await harness.work(run.run_id)
    elsewhere = SchedulerHarness(runs=harness.runs, record=harness.record)
    assert (await elsewhere.showing.show(run.run_id)).progress.recorded == 200


async def test_watch_shows_the_run_at_once_at_changes_and_ends_with_it() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    seen: list[RunSnapshot] = []

    async def watch() -> None:
        async for snapshot in harness.watching.watch(run.run_id):
            seen.append(snapshot)  # noqa: PERF401  # what was seen so far is looked at meanwhile

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(watch())
        await harness.finish(run.run_id, driver)
        harness.tracker.touch(run.run_id, harness.clock.monotonic())
    assert seen[-1].run.state is RunState.COMPLETED
    assert seen[-1].run.is_closed
    assert all(one != other for one, other in itertools.pairwise(seen))


async def test_list_is_newest_first_and_filtered() -> None:
    harness = SchedulerHarness()
    first = await harness.submit()
    harness.clock.seconds += 1
    second = await harness.submit()
    await harness.changing.cancel(first.run_id, OPERATOR)
    page = await harness.listing.list_page(RunFilter(), 10, None)
    assert [snapshot.run.run_id for snapshot in page.snapshots] == [second.run_id, first.run_id]
    assert [snapshot.wait.position if snapshot.wait else None for snapshot in page.snapshots] == [1, None]
    cancelled = await harness.listing.list_page(RunFilter(state=RunState.CANCELLED), 10, None)
    assert (len(cancelled.snapshots), cancelled.total) == (1, 1)


async def _step(harness: SchedulerHarness, run_id: RunId) -> str:
    return (await harness.showing.show(run_id)).progress.phase


async def _seconds_to_wait(harness: SchedulerHarness, run_id: RunId) -> float | None:
    wait = (await harness.showing.show(run_id)).wait
    assert wait is not None
    return wait.estimate.seconds if wait.estimate else None
