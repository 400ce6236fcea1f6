"""Outcomes leave in batches, and who added them learns when they are held durably."""

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest

from proctor.values.outcome import Failure, FailureClass
from services.worker.execution.outcome_batcher import OutcomeBatcher, OutcomeBatchLimits
from services.worker.execution.shard import Outcome, Shard
from tests.fakes.eventually import eventually
from tests.fakes.worker.held_message import HeldBackPublisher, a_shard

NEVER = 3600.0


def outcome(shard: Shard, sample: int, message: str = "no") -> Outcome:
    return Outcome(shard, sample, Failure(FailureClass.REFUSED, message))


class Bench:
    def __init__(self, limits: OutcomeBatchLimits) -> None:
        self.publisher = HeldBackPublisher()
        self.publisher.may_publish.set()
        numbers = itertools.count()
        self.batcher = OutcomeBatcher(self.publisher, lambda: f"id-{next(numbers)}", limits)
        self.running = asyncio.create_task(self.batcher.run())


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench(OutcomeBatchLimits(outcomes=3, characters=1000, age_seconds=NEVER))
    yield bench
    bench.running.cancel()
    await asyncio.wait([bench.running])


async def test_a_full_batch_leaves_by_itself(bench: Bench) -> None:
    shard = a_shard(1, 2, 3)
    published = {bench.batcher.add(outcome(shard, sample)) for sample in (1, 2, 3)}
    assert len(published) == 1
    await asyncio.wait_for(asyncio.gather(*published), 5)
    assert bench.publisher.samples == [1, 2, 3]


async def test_a_large_batch_is_published_at_once(bench: Bench) -> None:
    await asyncio.wait_for(bench.batcher.add(outcome(a_shard(1), 1, "x" * 1000)), 5)
    assert bench.publisher.samples == [1]


async def test_an_old_batch_leaves_by_itself() -> None:
    bench = Bench(OutcomeBatchLimits(age_seconds=0.01))
    await asyncio.wait_for(bench.batcher.add(outcome(a_shard(1), 1)), 5)
    bench.running.cancel()
    assert bench.publisher.samples == [1]


async def test_the_end_of_a_shard_sends_its_run_and_no_other(bench: Bench) -> None:
    mine, other = a_shard(1), a_shard(2, run_id="run-2")
    published = bench.batcher.add(outcome(mine, 1))
    waiting = bench.batcher.add(outcome(other, 2))
    bench.batcher.flush(mine)
    await asyncio.wait_for(published, 5)
    assert not waiting.done()


async def test_epochs_of_a_run_do_not_mix(bench: Bench) -> None:
    for epoch in (1, 2):
        bench.batcher.add(outcome(a_shard(1, epoch=epoch), epoch))
    await asyncio.wait_for(bench.batcher.drain(), 5)
    assert [(batch.epoch, len(batch.outcomes)) for batch in bench.publisher.batches] == [(1, 1), (2, 1)]
    assert len(set(bench.publisher.ids)) == 2


async def test_a_failed_publish_fails_the_futures_of_its_outcomes(bench: Bench) -> None:
    bench.publisher.refusal = RuntimeError("too large")
    published = bench.batcher.add(outcome(a_shard(1), 1))
    bench.batcher.flush(a_shard(1))
    with pytest.raises(RuntimeError):
        await asyncio.wait_for(published, 5)


async def test_draining_waits_until_the_last_is_stored(bench: Bench) -> None:
    bench.publisher.may_publish.clear()
    bench.batcher.add(outcome(a_shard(1), 1))
    draining = asyncio.create_task(bench.batcher.drain())
    await eventually(lambda: not bench.batcher._open, "the batch is closed")
    assert not draining.done()
    bench.publisher.may_publish.set()
    await asyncio.wait_for(draining, 5)
    assert bench.publisher.samples == [1]
