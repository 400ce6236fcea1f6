"""A worker whose run is paused or waits: what is begun is finished and sent, the rest is let go."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from proctor.v1 import run_pb2
from services.common.clock import SystemClock
from services.worker.consumer.proto import shard_from_proto
from services.worker.engines.errors import RateLimited
from tests.fakes.eventually import eventually
from tests.fakes.worker.scripted_engine import ScriptedEngine
from tests.fakes.worker.worker_harness import WorkerHarness, work_shard, worker_harness, worker_in_process
from tests.harness.servers import RunningServer

OTHER_RUN = "22222222-2222-4222-8222-222222222222"
CLOCK = SystemClock()
SHARD = shard_from_proto(work_shard(0, [0]), CLOCK.now(), completes_text=True)


@pytest.fixture
async def harness(nats: RunningServer) -> AsyncIterator[WorkerHarness]:
    async with worker_harness(nats.address) as harness:
        yield harness


@pytest.mark.parametrize("state", [run_pb2.RUN_STATE_PAUSED, run_pb2.RUN_STATE_PENDING])
async def test_shards_that_are_begun_are_finished_and_the_others_let_go(
    nats: RunningServer, harness: WorkerHarness, state: run_pb2.RunState.ValueType
) -> None:
    release = asyncio.Event()

    async def when_released(text: str) -> str:
        await release.wait()
        return text

    engine = ScriptedEngine(when_released)
    for shard in range(4):
        await harness.send(work_shard(shard, range(shard * 8, shard * 8 + 8)))
    async with worker_in_process(nats.address, engine) as worker:
        await eventually(lambda: engine.in_flight == 8, "the engine is busy")
        await harness.publish_state(state)
        await eventually(lambda: len(worker.context.in_flight) == 1, "only the shard that is begun is held")
        await harness.send(work_shard(9, [99], run_id=OTHER_RUN))
        release.set()
        await harness.until_settled(5)
        await harness.until_answered(9)
    assert set(harness.counts) == {*range(8), 99}
    assert sum(engine.asked.values()) == 9
    assert engine.aborted == 0


async def test_a_run_that_has_its_slot_again_is_finished_once(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    engine = ScriptedEngine()
    await harness.publish_state(run_pb2.RUN_STATE_PAUSED)
    async with worker_in_process(nats.address, engine) as worker:
        await eventually(
            lambda: not worker.context.run_states.may_start(SHARD), "the worker knows of the pause"
        )
        await harness.send(work_shard(0, [0]))
        await harness.until_settled(5)
        await harness.publish_state(run_pb2.RUN_STATE_RUNNING)
        await eventually(lambda: worker.context.run_states.may_start(SHARD), "the worker knows of the slot")
        await harness.send(work_shard(0, [0], attempt=2))
        await harness.until_answered(1)
    assert engine.asked.total() == 1
    assert [outcome.attempt for outcome in harness.outcomes] == [2]


async def test_samples_that_the_provider_refused_outlive_a_pause_and_the_deadline_of_before(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    mended = False

    async def refuse_at_first(text: str) -> str:
        if not mended:
            raise RateLimited("429", retry_after_seconds=0.02)
        return text

    engine = ScriptedEngine(refuse_at_first)
    work = work_shard(0, range(8))
    work.time_left.FromTimedelta(timedelta(seconds=4))
    async with worker_in_process(nats.address, engine) as worker:
        await harness.send(work)
        await eventually(lambda: engine.asked.total() >= 8, "the provider refuses")
        await harness.publish_state(run_pb2.RUN_STATE_PAUSED)
        await harness.until_settled(5)
        assert harness.outcomes == []
        mended = True
        await harness.publish_state(run_pb2.RUN_STATE_RUNNING, time_left=timedelta(hours=1))
        await eventually(lambda: worker.context.run_states.may_start(SHARD), "the worker knows of the slot")
        assert worker.context.run_states.deadline(SHARD) > CLOCK.now() + timedelta(minutes=50)
        work.attempt = 2
        work.time_left.FromTimedelta(timedelta())
        await harness.send(work)
        await harness.until_answered(8)
