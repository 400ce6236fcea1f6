"""A worker on a real NATS: what it pulls is asked once, published, and only then acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proctor.v1 import outcome_pb2, run_pb2
from services.worker.engine import EngineDied, RateLimited
from tests.fakes.eventually import eventually
from tests.fakes.nats_server_process import NatsServerProcess, nats_server_process
from tests.fakes.scripted_engine import ScriptedEngine
from tests.fakes.worker_stand import RUN, WorkStand, pool_of, work_shard, work_stand, worker_in_process


@pytest.fixture
async def nats_server(tmp_path: Path) -> AsyncIterator[NatsServerProcess]:
    async with nats_server_process(tmp_path) as server:
        yield server


@pytest.fixture
async def stand(nats_server: NatsServerProcess) -> AsyncIterator[WorkStand]:
    async with work_stand(nats_server.url) as stand:
        yield stand


async def test_every_sample_is_asked_once_and_its_outcome_published(
    nats_server: NatsServerProcess, stand: WorkStand
) -> None:
    engine = ScriptedEngine()
    for shard in range(10):
        await stand.send(work_shard(shard, range(shard * 64, shard * 64 + 64)))
    async with worker_in_process(nats_server.url, engine):
        await stand.until_answered(640)
        await stand.until_settled()
    assert set(stand.counts.values()) == {1}
    assert set(engine.asked.values()) == {1}
    assert engine.largest_in_flight <= 8
    first = min(stand.outcomes, key=lambda outcome: outcome.sample)
    assert first.answer.text == "answer to sample 0 KEY=k0"
    assert (first.shard, first.attempt, first.usage.prompt_tokens) == (0, 1, 3)
    assert stand.batches[0].environment["engine"] == "scripted"
