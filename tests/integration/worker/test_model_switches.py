"""Workers of a pool with several models, on a real NATS: each model gets its turn and no shard is lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from proctor.v1 import model_pb2, work_messages_pb2
from proctor.values.priority import Priority
from proctor.values.providers.pool import Pool, PoolModel
from services.common.clock import SystemClock
from services.common.nats import streams
from services.common.nats.bucket import Bucket
from services.worker.consumer.nats import NatsShardSource
from services.worker.settings import WorkerSettings
from tests.fakes.eventually import eventually
from tests.fakes.worker.scripted_engine import ScriptedEngine
from tests.fakes.worker.worker_harness import (
    WorkerHarness,
    always,
    pool_of,
    work_shard,
    worker_harness,
    worker_in_process,
)
from tests.harness.servers import RunningServer

A, B = "vllm/a", "vllm/b"
POOL = pool_of(A, B)
QUICK = WorkerSettings(
    ack_wait_seconds=2,
    switch_when_idle_seconds=0.2,
    min_model_residency_seconds=1,
    heartbeat_seconds=1,
)


class NotingEngine(ScriptedEngine):
    """Notes what was loaded in which order; an answer takes a moment."""

    def __init__(self, *loadable: str) -> None:
        super().__init__(self._slowly, loadable)
        self.loads: list[str] = []

    async def load(self, model: str) -> None:
        assert not self.in_flight
        await super().load(model)
        self.loads.append(model)

    async def _slowly(self, text: str) -> str:
        await asyncio.sleep(0.05)
        return text


@pytest.fixture
async def harness(nats: RunningServer) -> AsyncIterator[WorkerHarness]:
    async with worker_harness(nats.address) as harness:
        yield harness


async def test_work_of_a_model_is_its_undelivered_shards_since_the_oldest(harness: WorkerHarness) -> None:
    source = NatsShardSource(harness.jetstream, POOL, SystemClock(), 30, always)
    assert await source.work_of([A, B]) == []
    await harness.send(work_shard(1, range(4), model=A), pool=POOL, priority=Priority.LOW)
    await harness.send(work_shard(2, range(4), model=B), pool=POOL)
    await harness.send(work_shard(3, range(4), model=A), pool=POOL)
    first, other = await source.work_of([A, B])
    assert (first.undelivered, other.undelivered) == (2, 1)
    assert first.since < other.since
    taken = await source.pull(A, Priority.LOW)
    (rest,) = await source.work_of([A])
    assert (rest.undelivered, rest.since > other.since) == (1, True)
    last = await source.pull(A, Priority.HIGH)
    assert taken
    assert last
    (held,) = await source.work_of([A])
    assert (held.undelivered, held.since) == (0, first.since)
    await asyncio.gather(taken.acknowledge(), last.acknowledge())

    async def is_gone() -> bool:
        return await source.work_of([A]) == []

    await eventually(is_gone, "what is acknowledged waits no more")


async def test_peers_are_the_workers_of_the_pool_that_are_not_draining(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    for worker, pool, state, note in (
        ("w1", "local", model_pb2.WORKER_STATE_READY, ""),
        (
            "w3",
            "local",
            model_pb2.WORKER_STATE_DRAINING,
            "the clock of the machine is 4:00:00 ahead of that of NATS",
        ),
        ("w4", "remote", model_pb2.WORKER_STATE_READY, ""),
    ):
        status = work_messages_pb2.WorkerStatus(
            worker_id=worker, pool=pool, state=state, note=note, ready_models=[A]
        )
        bucket = Bucket(harness.jetstream, streams.heartbeat_bucket(pool))
        await bucket.put(worker, status.SerializeToString())
    async with worker_in_process(nats.address, NotingEngine(A), pool=POOL, worker_id="w2") as parts:
        peers = await parts.consumer.selector.registry.peers()
    assert [peer.ready_models for peer in peers] == [(A,)]


async def test_busy_worker_switches_after_its_residency_and_every_sample_is_answered_once(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    engine = NotingEngine(A, B)
    for shard in range(50):
        await harness.send(work_shard(shard, range(shard * 8, shard * 8 + 8), model=A), pool=POOL)
    await harness.send(work_shard(50, range(400, 408), model=B), pool=POOL)
    async with worker_in_process(nats.address, engine, pool=POOL, settings=QUICK):
        await harness.until_answered(408)
        await harness.until_settled()
    assert set(harness.counts.values()) == {1}
    assert engine.loads == [A, B, A]
    positions = [outcome.sample for outcome in harness.outcomes]
    assert positions.index(400) < 380


async def test_one_of_two_idle_workers_switches_for_one_shard(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    engines = [NotingEngine(A, B), NotingEngine(A, B)]
    async with AsyncExitStack() as opened:
        for number, engine in enumerate(engines):
            worker = worker_in_process(
                nats.address, engine, pool=POOL, settings=QUICK, worker_id=f"w{number}"
            )
            await opened.enter_async_context(worker)

        async def both_report() -> bool:
            reported = await harness.statuses()
            return [status.loaded_model for status in reported] == [A, A]

        await eventually(both_report, "both workers tell what they have loaded")
        await harness.send(work_shard(1, range(8), model=B), pool=POOL)
        await harness.until_answered(8)
        await harness.until_settled()
    assert sorted(engine.loads for engine in engines) == [[A], [A, B]]


async def test_one_of_two_idle_workers_switches_though_heartbeats_take_long(
    nats: RunningServer, harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What each sees of the other is older than its decision."""
    put = Bucket.put

    async def put_late(bucket: Bucket, key: str, value: bytes) -> None:
        await asyncio.sleep(1.5)
        await put(bucket, key, value)

    engines = [NotingEngine(A, B), NotingEngine(A, B)]
    async with AsyncExitStack() as opened:
        for number, engine in enumerate(engines):
            worker = worker_in_process(
                nats.address, engine, pool=POOL, settings=QUICK, worker_id=f"w{number}"
            )
            await opened.enter_async_context(worker)
        await eventually(lambda: [engine.loads for engine in engines] == [[A], [A]], "both have loaded A")
        monkeypatch.setattr(Bucket, "put", put_late)
        await harness.send(work_shard(1, range(8), model=B), pool=POOL)
        await harness.until_answered(8)
        await harness.until_settled()
    assert sorted(engine.loads for engine in engines) == [[A], [A, B]]


async def test_models_that_share_an_engine_are_served_without_a_swap(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    adapter = PoolModel("vllm/adapter", "/nowhere", {}, lora="/adapter", engine_key=A)
    pool = Pool("local", "vllm", 8, (PoolModel(A, "/nowhere", {}), adapter), None)
    engine = NotingEngine(A, "vllm/adapter")
    for shard in range(10):
        model = (A, "vllm/adapter")[shard % 2]
        await harness.send(work_shard(shard, range(shard * 8, shard * 8 + 8), model=model), pool=pool)
    async with worker_in_process(nats.address, engine, pool=pool, settings=QUICK):
        await harness.until_answered(80)
        await harness.until_settled()
        (status,) = await harness.statuses()
    assert set(harness.counts.values()) == {1}
    assert engine.loads == [A, "vllm/adapter"]
    assert list(status.ready_models) == [A, "vllm/adapter"]
