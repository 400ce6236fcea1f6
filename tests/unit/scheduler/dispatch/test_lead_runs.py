"""A term of leadership: admission by priority and age, drivers for all live runs, an end with the term."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from proctor.values.priority import Priority
from proctor.values.run import RunId, RunState
from services.scheduler.dispatch.dispatch_shards import PoolLoad
from services.scheduler.dispatch.drive_run import DriveRun
from services.scheduler.dispatch.lead_runs import LeadRuns
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost, lead_when_elected
from services.scheduler.limits.queue_limits import LimitChanges
from services.scheduler.runs.lifecycle.run import Run
from tests.fakes.callers import OPERATOR, by
from tests.fakes.eventually import eventually
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order
from tests.fakes.scheduler_rules import credit_rule
from tests.fakes.suites.toy_suites import ToyRows


def leading(harness: SchedulerHarness) -> LeadRuns:
    def new_driver(token: FencingToken, run_id: RunId, load_of: Callable[[str], PoolLoad]) -> DriveRun:
        return DriveRun(harness.tools, token, run_id, load_of)

    return LeadRuns(
        harness.runs,
        harness.runs,
        harness.stream,
        harness.controls,
        harness.tracker,
        harness.clock,
        new_driver,
        harness.disks.awaited,
    )


async def test_runs_beyond_the_limit_wait_and_then_run() -> None:
    harness = SchedulerHarness()
    runs = [await harness.submit(toy_order(limit=3)) for _ in range(5)]

    async def all_are_closed() -> bool:
        assert await harness.runs.count_running() <= 3
        for run in runs:
            if run.run_id in harness.record.records:
                await harness.work(run.run_id)
                harness.clock.seconds += 0.1
        return all([(await harness.runs.get(run.run_id)).is_closed for run in runs])

    task = asyncio.ensure_future(leading(harness).lead(harness.fencing_token))
    await eventually(all_are_closed, "all five runs are closed")
    task.cancel()
    assert {(await harness.runs.get(run.run_id)).state for run in runs} == {RunState.COMPLETED}


async def test_no_run_starts_while_a_disk_fills_up() -> None:
    harness = SchedulerHarness()
    await harness.fill_disk(900)
    harness.fencing_token = harness.runs.begin_term()
    cancelled, _ = await harness.start()
    await harness.changing.cancel(cancelled.run_id, OPERATOR)

    async def is_closed() -> bool:
        return (await harness.runs.get(cancelled.run_id)).is_closed

    run = await harness.submit(toy_order(limit=3))

    async def is_completed() -> bool:
        if run.run_id in harness.record.records:
            await harness.work(run.run_id)
            harness.clock.seconds += 0.1
        return await _state(harness, run.run_id) == "completed"

    task = asyncio.ensure_future(leading(harness).lead(harness.fencing_token))
    # The leader works, but for admission.
    await eventually(is_closed, "the cancelled run is closed")
    assert await _state(harness, run.run_id) == "pending"
    await harness.fill_disk(899)
    await eventually(is_completed, "it starts by itself")
    task.cancel()


async def test_nothing_is_planned_or_sent_while_a_disk_is_full_and_what_is_on_its_way_is_recorded() -> None:
    harness = SchedulerHarness(rule=credit_rule(min_shards=2, max_shards=2))
    await harness.fill_disk(950)
    run, driver = await harness.start()
    await harness.advance(driver, 3)
    assert run.run_id not in harness.record.records
    await harness.fill_disk(940)
    await harness.advance(driver, 3)
    await harness.fill_disk(950)
    answered = await harness.work(run.run_id)
    await harness.advance(driver, 5)
    assert answered == len(harness.asked) > 0
    assert not harness.stream.sent.get(run.run_id)
    assert (await harness.runs.get(run.run_id)).state is RunState.RUNNING
    await harness.fill_disk(0)
    ended = await harness.finish(run.run_id, driver)
    assert ended.state is RunState.COMPLETED
    assert len(harness.asked) == len(set(harness.asked)) == ended.total


async def test_high_priority_goes_first_and_then_age() -> None:
    harness = SchedulerHarness()
    orders = [Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.NORMAL, Priority.HIGH]
    runs = []
    for priority in orders:
        harness.clock.seconds += 1
        runs.append(await harness.submit(toy_order(priority=priority)))
    await harness.admit()
    running = [index for index, run in enumerate(runs) if await _state(harness, run.run_id) == "running"]
    assert running == [1, 2, 4]


async def test_run_preempted_at_the_start_of_a_term_is_taken_off_the_wire() -> None:
    """Its driver was that of the earlier term."""
    harness = SchedulerHarness()
    await harness.runs.limits.change(LimitChanges(max_running_runs=1), by())
    low, driver = await harness.start(toy_order(priority=Priority.LOW))
    await harness.advance(driver, 3)
    assert harness.stream.sent[low.run_id]
    await harness.submit(toy_order(priority=Priority.HIGH, limit=3))
    harness.fencing_token = harness.runs.begin_term()

    async def is_off_the_wire() -> bool:
        return low.run_id not in harness.stream.sent and harness.controls.words[low.run_id][0] == "pending"

    task = asyncio.ensure_future(leading(harness).lead(harness.fencing_token))
    await eventually(is_off_the_wire, "the preempted run has no shards on the wire")
    task.cancel()


async def test_what_is_sent_back_of_a_closed_run_is_removed_and_that_of_a_paused_run_stays() -> None:
    harness = SchedulerHarness()
    paused, closed = await harness.submit(), await harness.submit()
    await harness.changing.pause(paused.run_id, OPERATOR)
    await harness.changing.cancel(closed.run_id, OPERATOR)

    async def is_closed() -> bool:
        return (await harness.runs.get(closed.run_id)).is_closed

    task = asyncio.ensure_future(leading(harness).lead(harness.fencing_token))
    await eventually(is_closed, "the cancelled run is closed")
    # A draining worker sends shards back late.
    harness.stream.sent |= {paused.run_id: [], closed.run_id: []}

    async def one_is_left() -> bool:
        harness.clock.seconds += 61
        harness.tracker.touch("", harness.clock.monotonic())
        return closed.run_id not in harness.stream.sent

    await eventually(one_is_left, "the work of the closed run is removed")
    task.cancel()
    assert paused.run_id in harness.stream.sent


async def test_old_term_ends_when_another_leads() -> None:
    harness = SchedulerHarness()
    task = asyncio.ensure_future(leading(harness).lead(harness.fencing_token))
    await asyncio.sleep(0)
    harness.runs.begin_term()
    harness.tracker.touch("", harness.clock.monotonic())
    with pytest.raises(BaseExceptionGroup) as caught:
        await asyncio.wait_for(task, 10)
    assert caught.value.subgroup(LeadershipLost) is not None


async def test_trouble_with_one_run_is_not_the_others() -> None:
    harness = SchedulerHarness()
    bad, good = await harness.submit(toy_order(limit=3)), await harness.submit(toy_order(limit=4))
    harness.runs.shards[bad.run_id] = None  # type: ignore[assignment]  # whatever touches it fails

    async def good_is_closed() -> bool:
        if good.run_id in harness.record.records:
            await harness.work(good.run_id)
            harness.clock.seconds += 0.1
        return (await harness.runs.get(good.run_id)).is_closed

    task = asyncio.ensure_future(leading(harness).lead(harness.fencing_token))
    await eventually(good_is_closed, "the other run is closed")
    task.cancel()


class _ShortTerm:
    """Ends on demand, as when the connection of the lock breaks."""

    def __init__(self, token: FencingToken) -> None:
        self.fencing_token = token
        self.ended = asyncio.Event()

    async def lost(self) -> None:
        await self.ended.wait()


class _Leadership:
    def __init__(self) -> None:
        self.terms: list[_ShortTerm] = []

    @asynccontextmanager
    async def term(self) -> AsyncIterator[_ShortTerm]:
        self.terms.append(_ShortTerm(FencingToken(len(self.terms) + 1)))
        yield self.terms[-1]


async def test_lost_term_is_followed_by_another() -> None:
    leadership = _Leadership()
    led: list[FencingToken] = []

    async def lead(token: FencingToken) -> None:
        led.append(token)
        if token == 2:
            raise LeadershipLost
        await asyncio.Event().wait()

    async def three_were_led() -> bool:
        if len(led) == 1:
            leadership.terms[0].ended.set()
        return len(led) == 3

    task = asyncio.ensure_future(lead_when_elected(leadership, lead))
    await eventually(three_were_led, "three terms were led")
    task.cancel()
    assert led == [1, 2, 3]


async def _state(harness: SchedulerHarness, run_id: RunId) -> str:
    return (await harness.runs.get(run_id)).state


async def test_a_pool_without_workers_leaves_room_for_shards_of_others() -> None:
    """Of a stream of 500 bytes 400 are shared, which one shard may pass."""
    harness = SchedulerHarness(rows=ToyRows(count=64 * 30), rule=credit_rule(min_shards=20))
    harness.stream.payload_bytes, harness.stream.stream_bytes = 100, 500
    lead = replace(leading(harness), pools=("remote", "local"))
    first = await harness.submit(toy_order(tasks=("say",)))
    task = asyncio.ensure_future(lead.lead(harness.fencing_token))

    async def is_sent(run: Run, shards: int) -> bool:
        return len(harness.stream.sent.get(run.run_id, ())) >= shards

    await eventually(lambda: is_sent(first, 4), "the room is full of the first run")
    other = await harness.submit(toy_order(tasks=("say",), model="vllm/starter"))
    await eventually(lambda: is_sent(other, 4), "the other pool has shards")
    late = await harness.submit(toy_order(tasks=("say",)))
    await eventually(lambda: is_sent(late, 1), "the late run has a shard")
    for _ in range(20):
        harness.tracker.touch(first.run_id, harness.clock.monotonic())
        await asyncio.sleep(0)
    task.cancel()
    held = {run.run_id: len(harness.stream.sent[run.run_id]) for run in (first, other, late)}
    assert max(held.values()) <= 5
    assert held[late.run_id] == 1


async def test_a_small_run_has_as_many_samples_on_the_way_as_one_whose_shards_have_grown() -> None:
    harness = SchedulerHarness(rows=ToyRows(count=8192))
    large = await harness.submit(toy_order(tasks=("say",)))
    task = asyncio.ensure_future(leading(harness).lead(harness.fencing_token))

    def sizes(run: Run) -> list[int]:
        return [shard.size for _, shard in harness.stream.sent.get(run.run_id, ())]

    async def has_grown() -> bool:
        grown = sizes(large) == [128] * 4
        if sizes(large) and not grown:
            await harness.work(large.run_id)
            # So slow that its speed asks for nothing ahead.
            harness.clock.seconds += 100
        return grown

    await eventually(has_grown, "the large run has grown shards on the way")
    small = await harness.submit(toy_order(tasks=("say",), limit=2000))

    async def is_sent() -> bool:
        return len(sizes(small)) >= 8

    await eventually(is_sent, "the small run has its part")
    task.cancel()
    assert sum(sizes(small)) == sum(sizes(large)) == 512
