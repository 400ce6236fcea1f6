"""Outcomes carry their share of the time of the engine's GPUs: answers, failures, and a suspect alone."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from services.worker.consumer.gpu_time import GpuTime
from tests.fakes.eventually import eventually
from tests.fakes.scheduler.surroundings import SetClock
from tests.fakes.worker.held_message import FakeShardMessage, a_shard
from tests.unit.worker.consumer.test_process_shard import Bench


@dataclass
class GpuBench:
    """A worker whose engine has two GPUs, and answers when the test says so."""

    clock: SetClock = field(default_factory=SetClock)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    gpus: int = 2

    def __post_init__(self) -> None:
        self.bench = Bench(GpuTime(self.clock, gpus=lambda: self.gpus))
        self.bench.engine.answer = self.answer

    async def answer(self, text: str) -> str:
        await self.go_on.wait()
        if text == "sample 13":
            raise RuntimeError("the provider has failed")
        return text

    async def execute(self, message: FakeShardMessage, seconds: float) -> dict[int, float]:
        """GPU seconds by sample; the engine takes `seconds` for all of them together."""
        self.go_on.clear()
        self.bench.publisher.batches.clear()
        count = len(message.shard.samples)
        _, working = self.bench.start(message)
        await eventually(lambda: self.bench.engine.in_flight == count, "all are asked")
        self.clock.seconds += seconds
        self.go_on.set()
        await asyncio.wait_for(working, 5)
        outcomes = [one for batch in self.bench.publisher.batches for one in batch.outcomes]
        return {one.sample: one.gpu_seconds for one in outcomes}


@pytest.fixture
async def worker() -> AsyncIterator[GpuBench]:
    made = GpuBench()
    yield made
    made.bench.publishing.cancel()
    await asyncio.wait([made.bench.publishing])


async def test_answers_that_are_computed_together_share_the_gpus(worker: GpuBench) -> None:
    used = await worker.execute(FakeShardMessage(a_shard(1, 2, 3)), seconds=9)
    assert used == {1: 6, 2: 6, 3: 6}  # 9 s of two GPUs, by three


async def test_failure_has_used_the_gpus_as_well(worker: GpuBench) -> None:
    used = await worker.execute(FakeShardMessage(a_shard(13, 14)), seconds=4)
    assert used == {13: 4, 14: 4}


async def test_suspect_that_is_asked_alone_has_all_of_them(worker: GpuBench) -> None:
    used = await worker.execute(FakeShardMessage(a_shard(7), failed_deliveries=1), seconds=5)
    assert used == {7: 10}


async def test_time_between_shards_is_nobodys(worker: GpuBench) -> None:
    await worker.execute(FakeShardMessage(a_shard(1)), seconds=1)
    worker.clock.seconds += 100
    assert await worker.execute(FakeShardMessage(a_shard(2, attempt=2)), seconds=1) == {2: 2}


async def test_engine_without_gpus_uses_none(worker: GpuBench) -> None:
    worker.gpus = 0
    assert await worker.execute(FakeShardMessage(a_shard(1)), seconds=3) == {1: 0}
