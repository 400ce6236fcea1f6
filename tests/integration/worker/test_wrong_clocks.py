"""A worker whose machine's clock is hours off answers everything in time, and says so."""

import time
from collections.abc import AsyncIterator

import pytest

from services.common.clock import ServerClock
from tests.fakes.eventually import eventually
from tests.fakes.worker.scripted_engine import ScriptedEngine
from tests.fakes.worker.worker_harness import WorkerHarness, work_shard, worker_harness, worker_in_process
from tests.harness.servers import RunningServer

HOURS = 4


@pytest.fixture
async def harness(nats: RunningServer) -> AsyncIterator[WorkerHarness]:
    async with worker_harness(nats.address) as harness:
        yield harness


@pytest.mark.parametrize("hours", [HOURS, -HOURS])
async def test_a_worker_whose_clock_is_off_answers_and_reports_it(
    nats: RunningServer, harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    true_time = time.time
    monkeypatch.setattr("services.common.clock.time.time", lambda: true_time() + hours * 3600)
    assert abs(ServerClock().now().timestamp() - true_time()) > (HOURS - 1) * 3600
    async with worker_in_process(nats.address, ScriptedEngine()):

        async def is_reported() -> bool:
            side = "ahead of" if hours > 0 else "behind"
            return any(f"4:00:00 {side} that of NATS" in each.note for each in await harness.statuses())

        await eventually(is_reported, "the heartbeat says that the clock is off")
        await harness.send(work_shard(1, range(8)))
        await harness.until_answered(8)
        await harness.until_settled()
    assert set(harness.counts.values()) == {1}
