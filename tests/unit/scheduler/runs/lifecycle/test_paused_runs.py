"""A run that leaves its place and gets one again: off the wire and on again, and nothing is lost."""

from dataclasses import replace
from datetime import timedelta

import pytest

from services.scheduler.dispatch.credit import CreditRule
from services.scheduler.runs.lifecycle.errors import RunAlreadyFinished, RunNotPausable, RunNotPaused
from services.scheduler.runs.lifecycle.run import Run, RunState
from services.scheduler.runs.limits.queue_limits import LimitChanges
from services.scheduler.runs.orders.run_order import Priority
from tests.fakes.scheduler_stand import SchedulerStand, toy_order

SLOW = CreditRule(floor=2, ceiling=2)


async def paused_in_mid_run(stand: SchedulerStand) -> Run:
    """Some samples are answered, some are with a worker, some wait on the wire, the rest is not sent."""
    run, driver = await stand.start()
    await stand.advance(driver, 3)
    await stand.work(run.run_id)
    await stand.advance(driver, 2)
    assert stand.stream.sent[run.run_id]
    await stand.pausing.pause(run.run_id)
    assert await stand.advance(driver, 3)
    return await stand.runs.get(run.run_id)


async def test_paused_run_is_taken_off_the_wire_and_workers_hear_of_it() -> None:
    stand = SchedulerStand(rule=SLOW)
    run = await paused_in_mid_run(stand)
    assert run.state is RunState.PAUSED
    assert run.run_id not in stand.stream.sent
    assert stand.controls.words[run.run_id] == (RunState.PAUSED, 1)
    assert stand.record.closings == []


async def test_resumed_run_asks_what_is_missing_and_nothing_twice() -> None:
    stand = SchedulerStand(rule=SLOW)
    run = await paused_in_mid_run(stand)
    await stand.resuming.resume(run.run_id)
    await stand.admit()
    ended = await stand.finish(run.run_id, stand.driver(run.run_id))
    assert (ended.state, ended.epoch) == (RunState.COMPLETED, 1)
    assert sorted(stand.asked) == list(range(200))


async def test_resumed_run_sends_nothing_before_it_knows_what_is_missing() -> None:
    stand = SchedulerStand(rule=SLOW)
    run = await paused_in_mid_run(stand)
    await stand.resuming.resume(run.run_id)
    await stand.admit()
    stand.stream.pending_in_outcomes = 1
    driver = stand.driver(run.run_id)
    await stand.advance(driver, 10)
    assert run.run_id not in stand.stream.sent
    stand.stream.pending_in_outcomes = 0
    await stand.advance(driver, 3)
    assert stand.stream.sent[run.run_id]


async def test_look_for_what_is_missing_costs_what_was_sent_and_not_what_is_left() -> None:
    stand = SchedulerStand(rule=CreditRule(floor=1, ceiling=1))
    run, driver = await stand.start(toy_order(rollouts=5))
    await stand.advance(driver, 3)
    [(_, shard)] = stand.stream.sent[run.run_id]
    await stand.pausing.pause(run.run_id)
    await stand.advance(driver, 3)
    await stand.resuming.resume(run.run_id)
    await stand.admit()
    await stand.advance(stand.driver(run.run_id), 3)
    assert stand.stream.sent[run.run_id][0][1].attempt == 2
    assert stand.record.listed_missing == len(shard.samples) + 1


async def test_driver_that_slept_through_a_pause_looks_for_what_workers_dropped() -> None:
    stand = SchedulerStand(rule=SLOW)
    run, driver = await stand.start()
    await stand.advance(driver, 3)
    await stand.pausing.pause(run.run_id)
    stand.stream.take(run.run_id)
    stand.clock.seconds += 1
    await stand.resuming.resume(run.run_id)
    await stand.admit()
    ended = await stand.finish(run.run_id, driver)
    assert ended.state is RunState.COMPLETED
    assert sorted(stand.asked) == list(range(200))


async def test_new_leader_goes_on_with_a_resumed_run() -> None:
    stand = SchedulerStand(rule=SLOW)
    run = await paused_in_mid_run(stand)
    stand.fencing_token = stand.runs.begin_term()
    await stand.resuming.resume(run.run_id)
    await stand.admit()
    await stand.advance(stand.driver(run.run_id), 1)
    stand.fencing_token = stand.runs.begin_term()
    ended = await stand.finish(run.run_id, stand.driver(run.run_id))
    assert ended.state is RunState.COMPLETED
    assert sorted(stand.asked) == list(range(200))


async def test_run_that_is_paused_before_its_first_place_waits_again_when_resumed() -> None:
    stand = SchedulerStand()
    run = await stand.submit()
    paused = await stand.pausing.pause(run.run_id)
    assert await stand.pausing.pause(run.run_id) == paused
    await stand.admit()
    assert (await stand.runs.get(run.run_id)).state is RunState.PAUSED
    await stand.resuming.resume(run.run_id)
    await stand.admit()
    assert (await stand.finish(run.run_id, stand.driver(run.run_id))).state is RunState.COMPLETED


async def test_only_what_is_not_over_can_be_paused_and_only_what_is_paused_resumed() -> None:
    stand = SchedulerStand()
    run, driver = await stand.start()
    with pytest.raises(RunNotPaused, match="is running; only a paused run can be resumed"):
        await stand.resuming.resume(run.run_id)
    await stand.finish(run.run_id, driver)
    with pytest.raises(RunNotPausable, match="is completed; only a run that is running or waits"):
        await stand.pausing.pause(run.run_id)


async def test_paused_run_can_be_cancelled_and_is_summed_up() -> None:
    stand = SchedulerStand(rule=SLOW)
    run = await paused_in_mid_run(stand)
    await stand.cancelling.cancel(run.run_id)
    assert await stand.advance(stand.driver(run.run_id), 3)
    assert (await stand.runs.get(run.run_id)).is_over
    assert stand.record.closings == [(run.run_id, 1, True)]
    with pytest.raises(RunAlreadyFinished):
        await stand.cancelling.cancel(run.run_id)


async def test_pause_takes_nothing_of_the_time_of_a_run_and_adds_nothing() -> None:
    stand = SchedulerStand(rule=SLOW)
    run = await paused_in_mid_run(stand)
    stand.clock.seconds += 9 * 3600
    await stand.resuming.resume(run.run_id)
    await stand.admit()
    driver = stand.driver(run.run_id)
    assert not await stand.advance(driver, 3)
    stand.clock.seconds += 3 * 3600 - run.ran_seconds - 10
    assert not await stand.advance(driver, 2)
    stand.clock.seconds += 10
    assert await stand.advance(driver, 10)
    ended = await stand.runs.get(run.run_id)
    assert ended.error is not None
    assert ended.error.message.startswith(
        "Resource limits exceeded (time): the run took longer than 3:00:00 "
    )


async def test_urgent_run_overtakes_between_the_shards_of_another() -> None:
    stand = SchedulerStand(rule=SLOW)
    await stand.runs.limits.change(LimitChanges(max_running=1, min_run_time=timedelta(seconds=60)))
    low, driver = await stand.start(toy_order(priority=Priority.LOW))
    await stand.advance(driver, 3)
    await stand.work(low.run_id)
    urgent = await stand.submit(toy_order(priority=Priority.HIGH, limit=4))
    await stand.admit()
    assert await stand.advance(driver, 2)
    assert stand.controls.words[low.run_id] == (RunState.PENDING, 1)
    assert low.run_id not in stand.stream.sent
    assert (await stand.finish(urgent.run_id, stand.driver(urgent.run_id))).state is RunState.COMPLETED
    stand.asked.clear()
    await stand.admit()
    recorded = 200 - len([item async for item in stand.record.missing(low.run_id, 1)])
    ended = await stand.finish(low.run_id, stand.driver(low.run_id))
    assert (ended.state, ended.epoch) == (RunState.COMPLETED, 1)
    assert 0 < recorded < 200
    assert len(stand.asked) == len(set(stand.asked)) == 200 - recorded


async def test_run_that_gave_way_while_it_was_planned_is_planned_again() -> None:
    stand = SchedulerStand()
    await stand.runs.limits.change(LimitChanges(max_running=1))
    low, _ = await stand.start(toy_order(priority=Priority.LOW))
    await stand.tools.planner.plan(stand.fencing_token, low)
    stand.runs.runs[low.run_id] = replace(await stand.runs.get(low.run_id), planned_epoch=0)
    urgent = await stand.submit(toy_order(priority=Priority.HIGH, limit=4))
    await stand.admit()
    assert await stand.advance(stand.driver(low.run_id), 2)
    await stand.finish(urgent.run_id, stand.driver(urgent.run_id))
    stand.asked.clear()
    await stand.admit()
    assert (await stand.finish(low.run_id, stand.driver(low.run_id))).state is RunState.COMPLETED
    assert sorted(stand.asked) == list(range(200))
