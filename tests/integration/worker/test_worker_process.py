"""The worker as a process, with the openai engine over a socket: killed, stopped, and badly treated."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proctor.v1 import outcome_pb2
from tests.fakes.eventually import eventually
from tests.fakes.thorough_cases import first_cases
from tests.fakes.worker.worker_harness import RUN, WorkerHarness, crash, work_shard, worker_harness
from tests.fakes.worker.worker_process import CONCURRENCY, worker_process
from tests.harness.model_server_process import ModelServerProcess, model_server_process
from tests.harness.servers import RunningServer


@pytest.fixture
async def harness(nats: RunningServer) -> AsyncIterator[WorkerHarness]:
    async with worker_harness(nats.address) as harness:
        yield harness


@pytest.fixture
async def model_server() -> AsyncIterator[ModelServerProcess]:
    async with model_server_process() as server:
        yield server


@pytest.mark.thorough
async def test_a_killed_worker_loses_nothing_and_the_next_asks_only_what_was_not_acknowledged(
    harness: WorkerHarness, nats: RunningServer, model_server: ModelServerProcess, tmp_path: Path
) -> None:
    await model_server.control(latency_seconds=0.02)
    for shard in range(20):
        await harness.send(work_shard(shard, range(shard * 16, shard * 16 + 16)))
    async with worker_process(nats.address, model_server.url, tmp_path) as worker:
        await harness.until_answered(80)
        worker.send_signal(signal.SIGKILL)
    async with worker_process(nats.address, model_server.url, tmp_path):
        await harness.until_answered(320)
        await harness.until_settled()
    assert all(outcome.answer.text == f"The answer is k{outcome.sample}." for outcome in harness.outcomes)
    held = CONCURRENCY + CONCURRENCY // 2 + 16
    assert (await model_server.stats())["requests"] <= 320 + held


async def test_kills_of_the_worker_fail_no_healthy_sample(
    harness: WorkerHarness, nats: RunningServer, model_server: ModelServerProcess, tmp_path: Path
) -> None:
    """The first end the whole shard and its single samples, the others a sample that is executed alone."""
    await model_server.control(latency_seconds=0.5)
    await harness.send(work_shard(1, range(5)))
    for in_flight, further in ((5, 5), (5, 5), (5, 5), (1, 2), (1, 2)):
        requests = (await model_server.stats())["requests"]

        async def may_be_killed(in_flight: int = in_flight, requests: int = requests + further) -> bool:
            stats = await model_server.stats()
            return bool(stats["in_flight"] >= in_flight and stats["requests"] >= requests)

        async with worker_process(nats.address, model_server.url, tmp_path) as worker:
            await eventually(may_be_killed, "the model is asked", 60)
            worker.send_signal(signal.SIGKILL)
    async with worker_process(nats.address, model_server.url, tmp_path):
        await harness.until_answered(5, 60)
        await harness.until_settled()
    assert all(outcome.answer.text == f"The answer is k{outcome.sample}." for outcome in harness.outcomes)


async def test_a_sample_that_kills_each_worker_fails_alone_and_soon(
    harness: WorkerHarness, nats: RunningServer, model_server: ModelServerProcess, tmp_path: Path
) -> None:
    await model_server.control(fault={"kind": "hang", "seconds": 60, "text": "KEY=k3"})
    await harness.send(work_shard(1, range(5)))
    kills = 0
    while len(harness.counts) < 5:
        before = (await model_server.stats())["faulted"]

        async def is_asked_or_given_up(before: int = before) -> bool:
            return len(harness.counts) == 5 or (await model_server.stats())["faulted"] > before

        async with worker_process(nats.address, model_server.url, tmp_path) as worker:
            await eventually(is_asked_or_given_up, "the sample is asked or given up", 60)
            if len(harness.counts) < 5:
                worker.send_signal(signal.SIGKILL)
                kills += 1
            else:
                await harness.until_settled()
    assert kills <= 6
    failed = [outcome for outcome in harness.outcomes if outcome.HasField("failure")]
    assert [outcome.sample for outcome in failed] == [3]
    assert failed[0].failure.failure_class == outcome_pb2.FAILURE_CLASS_ENGINE


async def test_a_worker_that_is_terminated_forwards_its_shards_and_exits_cleanly(
    harness: WorkerHarness, nats: RunningServer, model_server: ModelServerProcess, tmp_path: Path
) -> None:
    await model_server.control(latency_seconds=0.05)
    for shard in range(8):
        await harness.send(work_shard(shard, range(shard * 32, shard * 32 + 32)))
    address = (nats.address, model_server.url, tmp_path)
    async with worker_process(*address, drain_seconds="0.2") as worker:
        await harness.until_answered(40)
        worker.send_signal(signal.SIGTERM)
        await eventually(lambda: worker.returncode is not None, "the worker ends", 10)
        assert worker.returncode == 0
    assert await harness.statuses() == []
    assert await harness.left_in_work() > 0
    async with worker_process(*address):
        await harness.until_answered(256)
        await harness.until_settled()
    assert set(harness.counts.values()) == {1}
    # What is asked when the drain ends is broken off, and may have been answered a moment before.
    assert (await model_server.stats())["requests"] <= 256 + CONCURRENCY


@first_cases(
    2,
    "fault",
    [
        {"kind": "status", "status": 429, "retry_after": "1", "count": 6},
        {"kind": "status", "status": 503, "count": 6},
        {"kind": "half_body", "count": 6},
        {"kind": "malformed", "count": 6},
        {"kind": "reset", "count": 6},
        {"kind": "hang", "seconds": 3, "count": 6},
    ],
    ids=lambda fault: str(fault.get("status", fault["kind"])),
)
async def test_a_passing_provider_failure_fails_no_sample(
    harness: WorkerHarness,
    nats: RunningServer,
    model_server: ModelServerProcess,
    tmp_path: Path,
    fault: dict[str, object],
) -> None:
    await model_server.control(fault=fault)
    await harness.send(work_shard(1, range(16)))
    async with worker_process(nats.address, model_server.url, tmp_path, request_timeout_seconds="2"):
        await harness.until_answered(16)
        await harness.until_settled()
    assert set(harness.counts.values()) == {1}
    assert all(outcome.HasField("answer") for outcome in harness.outcomes)
    assert (await model_server.stats())["faulted"] == 6


async def test_a_provider_that_stays_dead_is_reported_and_never_an_answer(
    harness: WorkerHarness, nats: RunningServer, tmp_path: Path
) -> None:
    await harness.send(work_shard(1, range(4)))
    async with worker_process(nats.address, "http://127.0.0.1:9/v1", tmp_path, max_tries="2"):
        await harness.until_answered(4)
    classes = {outcome.failure.failure_class for outcome in harness.outcomes}
    assert classes == {outcome_pb2.FAILURE_CLASS_PROVIDER_ERROR}


async def test_an_unknown_model_is_reported_for_the_run_and_fails_no_sample(
    harness: WorkerHarness, nats: RunningServer, model_server: ModelServerProcess, tmp_path: Path
) -> None:
    async def refused_runs() -> dict[str, str]:
        return {
            f"{refused.run_id}/{refused.epoch}": refused.reason
            for status in await harness.statuses()
            for refused in status.refusals
        }

    async def is_reported() -> bool:
        return bool(await refused_runs())

    await harness.send(work_shard(1, range(4), model="openai/unknown"))
    async with worker_process(nats.address, model_server.url, tmp_path):
        await eventually(is_reported, "the heartbeat names the run")
        [(run, reason)] = (await refused_runs()).items()
    assert run == f"{RUN}/1"
    assert "answered 404" in reason
    assert harness.outcomes == []
    assert (await model_server.stats())["requests"] <= 4


@pytest.mark.thorough
async def test_a_worker_goes_on_after_a_crash_of_nats(
    harness: WorkerHarness, nats: RunningServer, model_server: ModelServerProcess, tmp_path: Path
) -> None:
    await model_server.control(latency_seconds=0.02)
    async with worker_process(nats.address, model_server.url, tmp_path) as worker:
        for shard in range(10):
            await harness.send(work_shard(shard, range(shard * 16, shard * 16 + 16)))
        await harness.until_answered(40)
        await crash(nats)
        await harness.until_answered(160)
        await harness.until_settled()
        assert worker.returncode is None
    assert (await model_server.stats())["requests"] == 160
