"""A worker on a real NATS: what it pulls is asked once, published, and only then acknowledged."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from proctor.v1 import outcome_pb2, run_pb2
from proctor.values.priority import Priority
from proctor.values.scoring import INSTRUCTION_VERSION
from services.common.clock import SystemClock
from services.worker.consumer.proto import shard_from_proto
from services.worker.engines.errors import EngineDied, RateLimited
from services.worker.execution.shard import Shard
from services.worker.settings import WorkerSettings
from tests.fakes.eventually import eventually
from tests.fakes.worker.scripted_engine import ScriptedEngine
from tests.fakes.worker.worker_harness import (
    WorkerHarness,
    crash,
    pool_of,
    work_shard,
    worker_harness,
    worker_in_process,
)
from tests.harness.servers import RunningServer

OTHER_RUN = "22222222-2222-4222-8222-222222222222"


@pytest.fixture
async def harness(nats: RunningServer) -> AsyncIterator[WorkerHarness]:
    async with worker_harness(nats.address) as harness:
        yield harness


async def test_every_sample_is_asked_once_and_its_outcome_published(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    engine = ScriptedEngine()
    for shard in range(10):
        await harness.send(work_shard(shard, range(shard * 64, shard * 64 + 64)))
    async with worker_in_process(nats.address, engine):
        await harness.until_answered(640)
        await harness.until_settled()
    assert set(harness.counts.values()) == {1}
    assert set(engine.asked.values()) == {1}
    assert engine.largest_in_flight <= 8
    first = min(harness.outcomes, key=lambda outcome: outcome.sample)
    assert first.answer.text == "answer to sample 0 KEY=k0"
    assert (first.shard, first.attempt, first.usage.prompt_tokens) == (0, 1, 3)
    assert harness.batches[0].environment["engine"] == "scripted"


async def test_only_a_run_with_choice_instructions_stores_their_version(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    weighed, answered = work_shard(0, [0]), work_shard(1, [1], run_id=OTHER_RUN)
    for work in (weighed, answered):
        work.samples[0].choices.extend([" a", " b"])
    answered.scoring_method = run_pb2.SCORING_METHOD_GENERATE
    await harness.send(weighed)
    await harness.send(answered)
    async with worker_in_process(nats.address, ScriptedEngine()):
        await harness.until_answered(2)
    said = {batch.run_id: batch.environment.get("choice_instruction") for batch in harness.batches}
    assert said == {weighed.run_id: None, OTHER_RUN: INSTRUCTION_VERSION}


async def test_a_shard_of_high_priority_goes_first(nats: RunningServer, harness: WorkerHarness) -> None:
    for shard in range(6):
        await harness.send(work_shard(shard, range(shard * 8, shard * 8 + 8)), priority=Priority.LOW)
    await harness.send(work_shard(6, range(48, 56)), priority=Priority.HIGH)
    async with worker_in_process(nats.address, ScriptedEngine()):
        await harness.until_answered(56)
    positions = [outcome.shard for outcome in harness.outcomes]
    assert positions.index(6) < positions.index(4)


async def test_a_cancelled_run_is_aborted_within_two_seconds(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    async def never(_: str) -> str:
        await asyncio.Event().wait()
        return ""

    engine = ScriptedEngine(never)
    for shard in range(3):
        await harness.send(work_shard(shard, range(shard * 8, shard * 8 + 8)))
    async with worker_in_process(nats.address, engine) as worker:
        await eventually(lambda: engine.in_flight == 8, "the engine is busy")
        await harness.publish_state(run_pb2.RUN_STATE_CANCELLED)
        await eventually(lambda: engine.in_flight == 0, "nothing is asked any more", 2)
        await harness.until_settled(5)
        assert engine.aborted == 8
        assert worker.context.prefetch.is_idle() or await _becomes_idle(worker.context.prefetch.is_idle)
    assert harness.outcomes == []


async def _becomes_idle(is_idle: Callable[[], bool]) -> bool:
    await eventually(is_idle, "the worker holds nothing", 5)
    return True


async def test_a_shard_of_an_earlier_epoch_is_dropped_and_a_later_one_is_asked(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    await harness.publish_state(run_pb2.RUN_STATE_CANCELLED, epoch=2)
    engine = ScriptedEngine()
    async with worker_in_process(nats.address, engine) as worker:
        await eventually(
            lambda: not worker.context.run_states.is_current(_epoch(1)), "the worker knows of the run"
        )
        await harness.send(work_shard(1, [1]))
        later = work_shard(2, [2], attempt=2)
        later.epoch = 3
        await harness.send(later)
        await harness.until_answered(1)
        await harness.until_settled()
    assert set(harness.counts) == {2}


async def test_what_a_drained_worker_leaves_is_asked_by_the_next_and_nothing_twice(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    async def slow_from_thirty(text: str) -> str:
        if int(text.split("=k")[1]) >= 30:
            await asyncio.Event().wait()
        return text

    await harness.send(work_shard(1, range(64)))
    first, second = ScriptedEngine(slow_from_thirty), ScriptedEngine()
    async with worker_in_process(nats.address, first) as worker:
        await eventually(lambda: sum(first.asked.values()) == 38, "the engine is stuck")
        worker.consumer.stop()
        await worker.consumer.drain(0.1)
        await worker.batcher.drain()
        assert worker.context.prefetch.held == 0

    async def only_the_rest_is_left() -> bool:
        return await harness.left_in_work() == 1

    # The acknowledgement of the whole is on its way when the worker has left.
    await eventually(only_the_rest_is_left, "what it leaves waits in one message")
    async with worker_in_process(nats.address, second):
        await harness.until_answered(64)
        await harness.until_settled()
    assert set(harness.counts.values()) == {1}
    assert len(second.asked) == 34


async def test_a_sample_that_kills_the_engine_fails_alone(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    async def deadly(text: str) -> str:
        await asyncio.sleep(0.01)  # the others get into flight
        if text.endswith("=k13"):
            raise EngineDied("The engine died.")
        return text

    for shard in range(2):
        await harness.send(work_shard(shard, range(shard * 16, shard * 16 + 16)))
    async with worker_in_process(nats.address, ScriptedEngine(deadly)):
        await harness.until_answered(32, 60)
        await harness.until_settled()
    failed = [outcome for outcome in harness.outcomes if outcome.HasField("failure")]
    assert [outcome.sample for outcome in failed] == [13]
    assert failed[0].failure.failure_class == outcome_pb2.FAILURE_CLASS_ENGINE
    assert set(harness.counts.values()) == {1}


async def test_wiped_streams_lose_no_outcome_that_comes_after(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    gate = asyncio.Event()

    async def gated(text: str) -> str:
        await gate.wait()
        return text

    engine = ScriptedEngine(gated)
    async with worker_in_process(nats.address, engine):
        await harness.send(work_shard(1, range(8)))
        await eventually(lambda: engine.in_flight == 8, "the engine is busy")
        await harness.wipe()
        gate.set()
        await harness.until_answered(8)
        await harness.send(work_shard(2, range(8, 16)))
        await harness.until_answered(16)
        await harness.publish_state(run_pb2.RUN_STATE_CANCELLED)
        await harness.send(work_shard(3, range(16, 24)))
        await harness.until_settled()
        await eventually(lambda: _has_heartbeat(harness), "the new bucket has the worker's heartbeat")
    assert set(harness.counts.values()) == {1}


async def _has_heartbeat(harness: WorkerHarness) -> bool:
    return [status.worker_id for status in await harness.statuses()] == ["worker-1"]


async def test_a_crash_of_nats_loses_nothing_and_asks_nothing_twice(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    async def brief(text: str) -> str:
        await asyncio.sleep(0.01)
        return text

    engine = ScriptedEngine(brief)
    for shard in range(20):
        await harness.send(work_shard(shard, range(shard * 16, shard * 16 + 16)))
    async with worker_in_process(nats.address, engine):
        await harness.until_answered(60)
        await crash(nats)
        await harness.until_answered(320, 60)
        await harness.until_settled()
    assert set(engine.asked.values()) == {1}
    assert set(harness.counts) == set(range(320))


async def test_a_shard_that_takes_longer_than_its_message_is_kept_from_other_workers(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    settings = WorkerSettings(ack_wait_seconds=1)

    async def slow(text: str) -> str:
        await asyncio.sleep(3 * settings.ack_wait_seconds)
        return text

    engine = ScriptedEngine(slow)
    address = (nats.address, engine)
    async with (
        worker_in_process(*address, settings=settings),
        worker_in_process(*address, settings=settings),
    ):
        await harness.send(work_shard(1, range(4)))
        await harness.until_answered(4)
        await harness.until_settled()
    assert set(engine.asked.values()) == {1}


async def test_a_rate_limit_is_waited_out(nats: RunningServer, harness: WorkerHarness) -> None:
    refusals = iter(range(10))

    async def limited(text: str) -> str:
        if next(refusals, None) is not None:
            raise RateLimited("Too many requests.", retry_after_seconds=0.05)
        return text

    await harness.send(work_shard(1, range(4)))
    async with worker_in_process(nats.address, ScriptedEngine(limited)):
        await harness.until_answered(4)
    assert all(outcome.HasField("answer") for outcome in harness.outcomes)


async def test_an_idle_worker_switches_to_the_model_with_work(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    pool = pool_of("vllm/a", "vllm/b")
    engine = ScriptedEngine(loadable=("vllm/a", "vllm/b"))
    async with worker_in_process(nats.address, engine, pool=pool):
        await harness.send(work_shard(1, range(8), model="vllm/a"), pool=pool)
        await harness.send(work_shard(2, range(8, 16), model="vllm/b"), pool=pool)
        await harness.until_answered(16)
        assert engine.loaded_model == "vllm/b"
        await harness.send(work_shard(3, range(16, 24), model="vllm/a"), pool=pool)
        await harness.until_answered(24)


async def test_a_model_that_cannot_be_loaded_is_reported_and_the_others_are_served(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    pool = pool_of("vllm/broken", "vllm/b")
    engine = ScriptedEngine(loadable=("vllm/b",))

    async def is_reported() -> bool:
        reported = [dict(status.cannot_load) for status in await harness.statuses()]
        return reported == [{"vllm/broken": "There is no model vllm/broken."}]

    async with worker_in_process(nats.address, engine, pool=pool):
        await eventually(is_reported, "the heartbeat tells why")
        await harness.send(work_shard(1, range(8), model="vllm/broken"), pool=pool)
        await harness.send(work_shard(2, range(8, 16), model="vllm/b"), pool=pool)
        await harness.until_answered(8)
    assert set(harness.counts) == set(range(8, 16))


def _epoch(epoch: int) -> Shard:
    work = work_shard(1, [1])
    work.epoch = epoch
    return shard_from_proto(work, SystemClock().now(), completes_text=True)
