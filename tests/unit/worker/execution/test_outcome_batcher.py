"""Outcomes leave in batches, and who added them learns when they are held durably."""

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest

from proctor.values.outcome import Answer, Failure, FailureClass
from proctor.values.usage import Timing, TokenUsage
from services.worker.engines.engine import EngineResponse
from services.worker.execution.outcome_batcher import OutcomeBatcher, OutcomeBatchLimits
from services.worker.execution.shard import Shard
from tests.fakes.eventually import eventually
from tests.fakes.worker.held_message import HeldBackPublisher, a_shard

NEVER = 3600.0


class Bench:
    def __init__(self, limits: OutcomeBatchLimits) -> None:
        self.publisher = HeldBackPublisher()
        self.publisher.may_publish.set()
        numbers = itertools.count()
        self.batcher = OutcomeBatcher(self.publisher, lambda: f"id-{next(numbers)}", limits)
        self.running = asyncio.create_task(self.batcher.run())

    def add(self, shard: Shard, sample: int, message: str = "no") -> asyncio.Future[None]:
        failure = Failure(FailureClass.REFUSED, message)
        return self.batcher.add(shard, shard.outcome(sample, failure))


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench(OutcomeBatchLimits(outcomes=3, characters=1000, age_seconds=NEVER))
    yield bench
    bench.running.cancel()
    await asyncio.wait([bench.running])


async def test_a_full_batch_leaves_by_itself(bench: Bench) -> None:
    shard = a_shard(1, 2, 3)
    published = {bench.add(shard, sample) for sample in (1, 2, 3)}
    assert len(published) == 1
    await asyncio.wait_for(asyncio.gather(*published), 5)
    assert bench.publisher.samples == [1, 2, 3]


async def test_a_large_batch_is_published_at_once(bench: Bench) -> None:
    await asyncio.wait_for(bench.add(a_shard(1), 1, "x" * 1000), 5)
    assert bench.publisher.samples == [1]


async def test_the_whole_answer_counts_as_its_text_does(bench: Bench) -> None:
    shard, answer = a_shard(1), Answer("42", body_json="x" * 1000)
    outcome = shard.outcome(1, EngineResponse(answer, TokenUsage(), Timing()))
    await asyncio.wait_for(bench.batcher.add(shard, outcome), 5)
    assert bench.publisher.samples == [1]


async def test_a_batch_has_each_shard_of_its_outcomes_once(bench: Bench) -> None:
    first, second = a_shard(1, 2), a_shard(3, number=2)
    for shard, sample in ((first, 1), (second, 3), (first, 2)):
        bench.add(shard, sample)
    await asyncio.wait_for(bench.batcher.drain(), 5)
    assert [batch.shards for batch in bench.publisher.batches] == [(first, second)]


async def test_an_old_batch_leaves_by_itself() -> None:
    bench = Bench(OutcomeBatchLimits(age_seconds=0.01))
    await asyncio.wait_for(bench.add(a_shard(1), 1), 5)
    bench.running.cancel()
    assert bench.publisher.samples == [1]


async def test_the_end_of_a_shard_sends_its_run_and_no_other(bench: Bench) -> None:
    mine, other = a_shard(1), a_shard(2, run_id="run-2")
    with bench.batcher.executed(other):
        with bench.batcher.executed(mine):
            published = bench.add(mine, 1)
            waiting = bench.add(other, 2)
        await asyncio.wait_for(published, 5)
        assert not waiting.done()


async def test_a_shard_that_ends_waits_for_others_of_its_run_and_epoch(bench: Bench) -> None:
    first, second, earlier = a_shard(1), a_shard(2, number=2), a_shard(3, epoch=2)
    with bench.batcher.executed(second), bench.batcher.executed(earlier):
        with bench.batcher.executed(first):
            bench.add(first, 1)
        assert bench.batcher._open
        published = bench.add(second, 2)
        await asyncio.sleep(0)
        assert not published.done()
    await asyncio.wait_for(published, 5)
    assert [len(batch.outcomes) for batch in bench.publisher.batches] == [2]


async def test_epochs_of_a_run_do_not_mix(bench: Bench) -> None:
    for epoch in (1, 2):
        bench.add(a_shard(1, epoch=epoch), epoch)
    await asyncio.wait_for(bench.batcher.drain(), 5)
    assert [(batch.epoch, len(batch.outcomes)) for batch in bench.publisher.batches] == [(1, 1), (2, 1)]
    assert len(set(bench.publisher.ids)) == 2


async def test_a_failed_publish_fails_the_futures_of_its_outcomes(bench: Bench) -> None:
    bench.publisher.refusal = RuntimeError("too large")
    with bench.batcher.executed(a_shard(1)):
        published = bench.add(a_shard(1), 1)
    with pytest.raises(RuntimeError):
        await asyncio.wait_for(published, 5)


async def test_draining_waits_until_the_last_is_stored(bench: Bench) -> None:
    bench.publisher.may_publish.clear()
    bench.add(a_shard(1), 1)
    draining = asyncio.create_task(bench.batcher.drain())
    await eventually(lambda: not bench.batcher._open, "the batch is closed")
    assert not draining.done()
    bench.publisher.may_publish.set()
    await asyncio.wait_for(draining, 5)
    assert bench.publisher.samples == [1]


async def test_batch_is_the_last_where_nothing_else_of_its_run_is_executed(bench: Bench) -> None:
    first, second, other = a_shard(1, 2), a_shard(3, number=2), a_shard(9, run_id="run-2")
    with bench.batcher.executed(other):
        with bench.batcher.executed(second):
            with bench.batcher.executed(first):
                for sample in (1, 2, 3):
                    bench.add(first, sample)
            # Full, while the second shard goes on.
            await eventually(lambda: len(bench.publisher.batches) == 1, "the full one left")
            bench.add(second, 3)
        await eventually(lambda: len(bench.publisher.batches) == 2, "the last one left")
    assert [batch.is_last for batch in bench.publisher.batches] == [False, True]
