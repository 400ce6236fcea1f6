"""A run that leaves its place and gets one again: off the wire and on again, and nothing is lost."""

from dataclasses import replace
from datetime import timedelta

import pytest

from proctor.values.priority import Priority
from proctor.values.run import RunState
from services.scheduler.limits.queue_limits import LimitChanges
from services.scheduler.runs.lifecycle.errors import RunAlreadyFinished, RunNotPausable, RunNotPaused
from services.scheduler.runs.lifecycle.run import Run
from tests.fakes.callers import OPERATOR, by
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order
from tests.fakes.scheduler_rules import credit_rule

SLOW = credit_rule(min_shards=2, max_shards=2)


async def paused_in_mid_run(harness: SchedulerHarness) -> Run:
    """Some samples are answered, some are with a worker, some wait on the wire, the rest is not sent."""
    run, driver = await harness.start()
    await harness.advance(driver, 3)
    await harness.work(run.run_id)
    await harness.advance(driver, 2)
    assert harness.stream.sent[run.run_id]
    await harness.changing.pause(run.run_id, OPERATOR)
    assert await harness.advance(driver, 3)
    return await harness.runs.get(run.run_id)


async def test_paused_run_is_taken_off_the_wire_and_its_state_is_published() -> None:
    harness = SchedulerHarness(rule=SLOW)
    run = await paused_in_mid_run(harness)
    assert run.state is RunState.PAUSED
    assert run.run_id not in harness.stream.sent
    assert harness.controls.words[run.run_id] == (RunState.PAUSED, 1)
    assert harness.record.closings == []


async def test_resumed_run_asks_what_is_missing_and_nothing_twice() -> None:
    harness = SchedulerHarness(rule=SLOW)
    run = await paused_in_mid_run(harness)
    await harness.changing.resume(run.run_id, OPERATOR)
    await harness.admit()
    ended = await harness.finish(run.run_id, harness.driver(run.run_id))
    assert (ended.state, ended.epoch) == (RunState.COMPLETED, 1)
    assert sorted(harness.asked) == list(range(200))


async def test_resumed_run_sends_nothing_before_it_knows_what_is_missing() -> None:
    harness = SchedulerHarness(rule=SLOW)
    run = await paused_in_mid_run(harness)
    await harness.changing.resume(run.run_id, OPERATOR)
    await harness.admit()
    harness.stream.pending_in_outcomes = 1
    driver = harness.driver(run.run_id)
    await harness.advance(driver, 10)
    assert run.run_id not in harness.stream.sent
    harness.stream.pending_in_outcomes = 0
    await harness.advance(driver, 3)
    assert harness.stream.sent[run.run_id]


async def test_look_for_what_is_missing_costs_what_was_sent_and_not_what_is_left() -> None:
    harness = SchedulerHarness(rule=credit_rule(min_shards=1, max_shards=1))
    run, driver = await harness.start(toy_order(rollouts=5))
    await harness.advance(driver, 3)
    [(_, shard)] = harness.stream.sent[run.run_id]
    await harness.changing.pause(run.run_id, OPERATOR)
    await harness.advance(driver, 3)
    await harness.changing.resume(run.run_id, OPERATOR)
    await harness.admit()
    await harness.advance(harness.driver(run.run_id), 3)
    assert harness.stream.sent[run.run_id][0][1].attempt == 2
    assert harness.record.listed_missing == len(shard.samples) + 1


async def test_driver_that_slept_through_a_pause_looks_for_what_workers_dropped() -> None:
    harness = SchedulerHarness(rule=SLOW)
    run, driver = await harness.start()
    await harness.advance(driver, 3)
    await harness.changing.pause(run.run_id, OPERATOR)
    harness.stream.take(run.run_id)
    harness.clock.seconds += 1
    await harness.changing.resume(run.run_id, OPERATOR)
    await harness.admit()
    ended = await harness.finish(run.run_id, driver)
    assert ended.state is RunState.COMPLETED
    assert sorted(harness.asked) == list(range(200))


async def test_new_leader_goes_on_with_a_resumed_run() -> None:
    harness = SchedulerHarness(rule=SLOW)
    run = await paused_in_mid_run(harness)
    harness.fencing_token = harness.runs.begin_term()
    await harness.changing.resume(run.run_id, OPERATOR)
    await harness.admit()
    await harness.advance(harness.driver(run.run_id), 1)
    harness.fencing_token = harness.runs.begin_term()
    ended = await harness.finish(run.run_id, harness.driver(run.run_id))
    assert ended.state is RunState.COMPLETED
    assert sorted(harness.asked) == list(range(200))


async def test_run_that_is_paused_before_its_first_slot_waits_again_when_resumed() -> None:
    harness = SchedulerHarness()
    run = await harness.submit()
    paused = await harness.changing.pause(run.run_id, OPERATOR)
    assert await harness.changing.pause(run.run_id, OPERATOR) == paused
    await harness.admit()
    assert (await harness.runs.get(run.run_id)).state is RunState.PAUSED
    await harness.changing.resume(run.run_id, OPERATOR)
    await harness.admit()
    assert (await harness.finish(run.run_id, harness.driver(run.run_id))).state is RunState.COMPLETED


async def test_only_what_is_not_over_can_be_paused_and_only_what_is_paused_resumed() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    with pytest.raises(RunNotPaused) as refused:
        await harness.changing.resume(run.run_id, OPERATOR)
    assert refused.value.facts["state"] == "running"
    await harness.finish(run.run_id, driver)
    with pytest.raises(RunNotPausable) as ended_run:
        await harness.changing.pause(run.run_id, OPERATOR)
    assert ended_run.value.facts["state"] == "completed"


async def test_paused_run_can_be_cancelled_and_is_closed() -> None:
    harness = SchedulerHarness(rule=SLOW)
    run = await paused_in_mid_run(harness)
    await harness.changing.cancel(run.run_id, OPERATOR)
    assert await harness.advance(harness.driver(run.run_id), 3)
    assert (await harness.runs.get(run.run_id)).is_closed
    assert harness.record.closings == [(run.run_id, 1, True)]
    with pytest.raises(RunAlreadyFinished):
        await harness.changing.cancel(run.run_id, OPERATOR)


async def test_pause_takes_nothing_of_the_time_of_a_run_and_adds_nothing() -> None:
    harness = SchedulerHarness(rule=SLOW)
    run = await paused_in_mid_run(harness)
    harness.clock.seconds += 9 * 3600
    await harness.changing.resume(run.run_id, OPERATOR)
    await harness.admit()
    driver = harness.driver(run.run_id)
    assert not await harness.advance(driver, 3)
    harness.clock.seconds += 3 * 3600 - run.ran_seconds - 10
    assert not await harness.advance(driver, 2)
    harness.clock.seconds += 10
    assert await harness.advance(driver, 10)
    ended = await harness.runs.get(run.run_id)
    assert ended.error is not None
    assert ended.error.reason == "DEADLINE_REACHED"
    assert "3:00:00" in ended.error.message


async def test_urgent_run_overtakes_between_the_shards_of_another() -> None:
    harness = SchedulerHarness(rule=SLOW)
    await harness.runs.limits.change(
        LimitChanges(max_running_runs=1, min_run_time=timedelta(seconds=60)), by()
    )
    low, driver = await harness.start(toy_order(priority=Priority.LOW))
    await harness.advance(driver, 3)
    await harness.work(low.run_id)
    urgent = await harness.submit(toy_order(priority=Priority.HIGH, limit=4))
    await harness.admit()
    assert await harness.advance(driver, 2)
    assert harness.controls.words[low.run_id] == (RunState.PENDING, 1)
    assert low.run_id not in harness.stream.sent
    assert (await harness.finish(urgent.run_id, harness.driver(urgent.run_id))).state is RunState.COMPLETED
    harness.asked.clear()
    await harness.admit()
    recorded = 200 - len([item async for item in harness.record.missing(low.run_id, 1)])
    ended = await harness.finish(low.run_id, harness.driver(low.run_id))
    assert (ended.state, ended.epoch) == (RunState.COMPLETED, 1)
    assert 0 < recorded < 200
    assert len(harness.asked) == len(set(harness.asked)) == 200 - recorded


async def test_run_that_was_preempted_while_it_was_planned_is_planned_again() -> None:
    harness = SchedulerHarness()
    await harness.runs.limits.change(LimitChanges(max_running_runs=1), by())
    low, _ = await harness.start(toy_order(priority=Priority.LOW))
    await harness.tools.planner.plan(harness.fencing_token, low)
    harness.runs.runs[low.run_id] = replace(await harness.runs.get(low.run_id), planned_epoch=0)
    urgent = await harness.submit(toy_order(priority=Priority.HIGH, limit=4))
    await harness.admit()
    assert await harness.advance(harness.driver(low.run_id), 2)
    await harness.finish(urgent.run_id, harness.driver(urgent.run_id))
    harness.asked.clear()
    await harness.admit()
    assert (await harness.finish(low.run_id, harness.driver(low.run_id))).state is RunState.COMPLETED
    assert sorted(harness.asked) == list(range(200))
