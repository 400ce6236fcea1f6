"""Pulls that wait: an idle worker asks NATS rarely, and no message is lost where a pull is withdrawn."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from nats.aio.msg import Msg

from proctor.v1 import work_messages_pb2
from proctor.values import messaging
from proctor.values.priority import Priority
from proctor.values.run import RunId
from services.common.clock import SystemClock
from services.common.nats import streams
from services.worker.consumer.nats import NatsShardSource
from services.worker.consumer.nats_pull import LongPull
from services.worker.execution.run_states import RunControl, RunStates
from tests.fakes.eventually import eventually
from tests.fakes.thorough_cases import first_cases
from tests.fakes.worker.scripted_engine import ScriptedEngine
from tests.fakes.worker.worker_harness import (
    POOL,
    RUN,
    WorkerHarness,
    always,
    crash,
    pool_of,
    work_shard,
    worker_harness,
    worker_in_process,
)
from tests.harness.servers import RunningServer

ANY_HIGH = streams.work_consumer(POOL.name, messaging.ANY_MODEL, Priority.HIGH, 30)
IDLE_SECONDS = 10.0
# Three times as long as a try to forward, so that a busy machine extends it in time too.
ACK_WAIT_SECONDS = 6.0
# After its last shard a worker asks a few times more.
SETTLED_SECONDS = 3.0
# What an idle worker may ask in that time: 0.2 calls a second.
MAX_CALLS = 0.2 * IDLE_SECONDS


@pytest.fixture
async def harness(nats: RunningServer) -> AsyncIterator[WorkerHarness]:
    async with worker_harness(nats.address) as harness:
        yield harness


async def unwanted(message: Msg) -> None:
    raise AssertionError(message.subject)


class NotedCalls:
    """The calls of JetStream's API that pass, without those of the harness itself."""

    def __init__(self) -> None:
        self.subjects: Counter[str] = Counter()
        self.last_at = asyncio.get_running_loop().time()

    async def note(self, message: Msg) -> None:
        if "STREAM.LIST" not in message.subject and "OUTCOMES" not in message.subject:
            self.subjects[message.subject] += 1
            self.last_at = asyncio.get_running_loop().time()

    async def until_quiet(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        await eventually(lambda: loop.time() > self.last_at + seconds, "nothing is asked", 30)


@first_cases(1, "models", [(), ("vllm/a", "vllm/b")])
async def test_an_idle_worker_asks_less_than_once_in_five_seconds(
    nats: RunningServer, harness: WorkerHarness, models: tuple[str, ...]
) -> None:
    pool, calls = (pool_of(*models) if models else POOL), NotedCalls()
    async with worker_in_process(nats.address, ScriptedEngine(loadable=models), pool=pool):
        await harness.send(work_shard(1, range(4), model=models[0] if models else "openai/fake"), pool=pool)
        await harness.until_answered(4)
        await harness.connection.subscribe("$JS.API.>", cb=calls.note)
        await calls.until_quiet(SETTLED_SECONDS)
        calls.subjects.clear()
        end = asyncio.get_running_loop().time() + IDLE_SECONDS
        await eventually(lambda: asyncio.get_running_loop().time() > end, "the time is over", 30)
    assert calls.subjects.total() <= MAX_CALLS, calls.subjects


async def test_a_waiting_pull_is_answered_at_once(harness: WorkerHarness) -> None:
    pull = LongPull(harness.jetstream, ANY_HIGH, unwanted)
    assert await pull.fetch() is None
    await harness.send(work_shard(1, range(4)))
    message = await pull.fetch()
    assert message
    await message.ack()


@pytest.mark.thorough
async def test_no_delivery_is_lost_or_counted_where_shards_meet_a_pull_on_hold(
    harness: WorkerHarness,
) -> None:
    source, other = (NatsShardSource(harness.jetstream, POOL, SystemClock(), 30, always) for _ in range(2))
    for shard in range(40):
        await source.pull(None, Priority.HIGH)
        sending = asyncio.create_task(harness.send(work_shard(shard, range(4))))
        await asyncio.sleep(0)
        message = await source.hold(None, Priority.HIGH)
        await sending
        message = message or await other.pull(None, Priority.HIGH)
        assert message
        assert (message.shard.number, message.failed_deliveries) == (shard, 0)
        await message.acknowledge()
    await harness.until_settled()


async def test_a_shard_of_an_ended_run_that_meets_a_pull_on_hold_is_gone(harness: WorkerHarness) -> None:
    states = RunStates()
    source = NatsShardSource(harness.jetstream, POOL, SystemClock(), 30, states.may_start)
    await source.pull(None, Priority.HIGH)
    await source.hold(None, Priority.HIGH)
    states.put(RunId(RUN), RunControl(epoch=1, is_final=True))
    await harness.send(work_shard(1, range(4)))
    await harness.until_settled()


async def test_a_shard_that_cannot_be_forwarded_comes_back_without_a_failed_delivery(
    harness: WorkerHarness,
) -> None:
    """The stream is full, with the shard on hold and one more: none of them was ever executed."""
    source = NatsShardSource(harness.jetstream, POOL, SystemClock(), ACK_WAIT_SECONDS, always)
    await source.pull(None, Priority.HIGH)
    await source.hold(None, Priority.HIGH)
    async with full_stream(harness, work_shard(1, range(4))):
        # Longer than the ack deadline: without an extension it would be delivered again.
        late = time.monotonic() + 1.5 * ACK_WAIT_SECONDS
        await eventually(lambda: time.monotonic() > late, "the ack deadline has passed")
        message = await source.pull(None, Priority.HIGH)
        assert message is not None
        assert (message.shard.number, message.failed_deliveries) == (1, 0)
        await message.acknowledge()
        await harness.until_settled()
    assert await source.pull(None, Priority.HIGH) is None


@asynccontextmanager
async def full_stream(harness: WorkerHarness, shard: work_messages_pb2.WorkShard) -> AsyncIterator[None]:
    """The stream of the pool takes this shard and no more."""
    manager, name = harness.connection.jsm(), streams.work_stream(POOL.name).name
    config = (await manager.stream_info(name)).config
    await manager.update_stream(config.evolve(max_msgs=1))
    try:
        await harness.send(shard)
        yield
    finally:
        await manager.update_stream(config)


async def test_a_pull_goes_on_after_the_server_was_killed(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    pull = LongPull(harness.jetstream, ANY_HIGH, unwanted)
    assert await pull.fetch() is None
    await crash(nats)
    await harness.send(work_shard(1, range(4)))
    found: list[Msg] = []

    async def is_there() -> bool:
        if message := await pull.fetch():
            found.append(message)
        return bool(found)

    await eventually(is_there, "the message arrives")
    await found[0].ack()


async def test_a_pull_goes_on_after_all_streams_were_wiped(harness: WorkerHarness) -> None:
    pull = LongPull(harness.jetstream, ANY_HIGH, unwanted)
    assert await pull.fetch() is None
    await harness.wipe()
    await harness.send(work_shard(1, range(4)))
    found: list[Msg] = []

    async def is_there() -> bool:
        if message := await pull.fetch():
            found.append(message)
        return bool(found)

    await eventually(is_there, "the message arrives")
    await found[0].ack()
