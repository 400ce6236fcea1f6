"""A worker pulls more as long as there is room, the highest priority first."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

from proctor.values.priority import Priority
from proctor.values.sample import MAX_SHARD_SAMPLES
from services.worker.consumer.prefetch import Prefetch, PrefetchLimits
from services.worker.execution.outcome_batcher import OutcomeBatchLimits


@dataclass
class HandClock:
    """Moves only by hand."""

    at: float = 100.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.at, tz=UTC)

    def monotonic(self) -> float:
        return self.at


def prefetch_of(
    concurrency: int, *, prefetched: int = 0, held: int = 1000, clock: HandClock | None = None
) -> Prefetch:
    return Prefetch(PrefetchLimits(concurrency, prefetched, held), clock=clock or HandClock())


async def has_room(prefetch: Prefetch, priority: Priority = Priority.HIGH) -> bool:
    """Whether it has room at once."""
    pull = asyncio.ensure_future(prefetch.until_room(priority))
    await asyncio.wait((pull,), timeout=0.01)
    pull.cancel()
    return pull.done() and not pull.cancelled() and pull.result()


async def test_there_is_room_until_enough_samples_wait() -> None:
    prefetch = prefetch_of(64)
    prefetch.add(63, 63)
    assert await has_room(prefetch)
    prefetch.add(1, 1)
    assert not await has_room(prefetch)
    prefetch.finish(1)
    assert await has_room(prefetch)


async def test_answers_that_cannot_be_published_stop_pulling() -> None:
    prefetch = prefetch_of(64, held=128)
    prefetch.add(128, 128)
    prefetch.finish(128)
    assert not await has_room(prefetch)
    prefetch.release(64)
    assert await has_room(prefetch)


async def test_lower_priority_waits_while_work_of_a_higher_one_flows() -> None:
    prefetch = prefetch_of(64)
    prefetch.report(Priority.HIGH, None, is_flowing=True)
    assert not await has_room(prefetch, priority=Priority.NORMAL)
    assert await has_room(prefetch, priority=Priority.HIGH)
    prefetch.report(Priority.HIGH, None, is_flowing=False)
    assert await has_room(prefetch, priority=Priority.LOW)


async def test_a_pull_that_waits_goes_on_when_there_is_room() -> None:
    prefetch = prefetch_of(1)
    prefetch.add(1, 1)
    pulls = [asyncio.create_task(prefetch.until_room(priority)) for priority in Priority]
    await asyncio.wait(pulls, timeout=0.01)
    prefetch.finish(1)
    assert await asyncio.wait_for(asyncio.gather(*pulls), 5) == [True, True, True]


async def test_nothing_is_pulled_while_it_is_closed() -> None:
    prefetch = prefetch_of(1)
    prefetch.add(1, 1)
    pull = asyncio.create_task(prefetch.until_room(Priority.HIGH))
    await asyncio.wait((pull,), timeout=0.01)
    prefetch.close()
    assert await asyncio.wait_for(pull, 5) is False
    prefetch.open()
    prefetch.finish(1)
    assert await has_room(prefetch)


async def test_it_is_empty_once_everything_is_released() -> None:
    prefetch = prefetch_of(8)
    prefetch.add(2, 2)
    emptied = asyncio.create_task(prefetch.until_empty())
    prefetch.finish(2)
    assert not prefetch.is_idle()
    prefetch.release(2)
    await asyncio.wait_for(emptied, 5)
    assert prefetch.is_idle()


async def test_behind_a_slow_engine_nothing_is_prefetched() -> None:
    clock = HandClock()
    prefetch = prefetch_of(64, prefetched=32, clock=clock)
    prefetch.add(64, 64)
    clock.at += 60
    prefetch.finish(4)
    prefetch.add(4, 64)
    assert not await has_room(prefetch)


async def test_a_fast_engine_prefetches_what_it_finishes_in_a_quarter_of_a_second() -> None:
    clock = HandClock()
    prefetch = prefetch_of(64, prefetched=32, clock=clock)
    prefetch.add(164, 164)
    clock.at += 1
    prefetch.finish(100)
    assert await has_room(prefetch)
    prefetch.add(24, 24)
    assert await has_room(prefetch)
    prefetch.add(1, 1)
    assert not await has_room(prefetch)


async def test_dropped_samples_do_not_count_as_finished() -> None:
    clock = HandClock()
    prefetch = prefetch_of(64, prefetched=32, clock=clock)
    prefetch.add(564, 564)
    clock.at += 1
    prefetch.drop(500)
    assert not await has_room(prefetch)


async def test_no_more_is_prefetched_than_the_limit() -> None:
    clock = HandClock()
    prefetch = prefetch_of(64, prefetched=32, clock=clock)
    prefetch.add(10_096, 64)
    clock.at += 1
    prefetch.finish(10_000)
    assert not await has_room(prefetch)


def test_a_small_engine_prefetches_little_and_a_large_one_a_shard_at_most() -> None:
    assert PrefetchLimits.for_concurrency(1).prefetched == 1
    assert PrefetchLimits.for_concurrency(256).prefetched == 64


async def test_a_small_engine_pulls_on_while_a_batch_out_of_grown_shards_waits_to_be_stored() -> None:
    prefetch = Prefetch(PrefetchLimits.for_concurrency(1), clock=HandClock())
    # The first and the last of them are in it in part.
    prefetch.add(0, 2 * MAX_SHARD_SAMPLES + OutcomeBatchLimits().outcomes)
    assert await has_room(prefetch)


async def test_rollouts_are_pulled_for_free_slots_only_and_hold_up_no_higher_priority() -> None:
    prefetch = Prefetch(PrefetchLimits(64, 0, 1000, rollouts=2), clock=HandClock())
    for _ in range(2):
        prefetch.add(1, 1)
        prefetch.take_slots(Priority.NORMAL, 1)
    assert not await has_room(prefetch, Priority.NORMAL)
    assert not await has_room(prefetch, Priority.LOW)
    assert await has_room(prefetch, Priority.HIGH)
    prefetch.finish(1)
    assert not await has_room(prefetch, Priority.NORMAL)
    prefetch.free_slots(Priority.NORMAL, 1)
    assert await has_room(prefetch, Priority.NORMAL)


class SteppingClock(HandClock):
    """The speed is measured anew at the second look, and at each second one after it."""

    def monotonic(self) -> float:
        self.at += 0.2
        return self.at


async def test_a_pull_that_waits_for_space_is_woken_by_a_finished_sample() -> None:
    prefetch = prefetch_of(1, prefetched=8, clock=SteppingClock())
    prefetch.add(2, 2)
    prefetch._depth.finish(40)
    pull = asyncio.ensure_future(prefetch.until_room(Priority.HIGH))
    await asyncio.sleep(0)
    assert not pull.done()
    prefetch.finish(2)
    assert await asyncio.wait_for(pull, 5)
