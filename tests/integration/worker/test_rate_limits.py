"""A provider that refuses costs time, never samples: worker processes, a real NATS, a limited server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from proctor.v1 import outcome_pb2, run_pb2, work_messages_pb2
from proctor.values import messaging
from services.common.clock import SystemClock
from services.common.lifecycle import cancel_all
from services.common.nats import streams
from services.common.nats.bucket import Bucket
from services.common.nats.connection import connect_nats
from services.common.nats.jetstream import JetStream
from services.scheduler.rate_limits.assign_quotas import AssignQuotas, QuotaKey
from services.scheduler.rate_limits.nats import NatsQuotas, NatsRateReports
from services.scheduler.rate_limits.rate_meter import RateLimitTracker, RateQuota, RequestRetryBudget
from services.scheduler.runs.lifecycle.nats import NatsRunControls
from services.scheduler.workers.nats import NatsWorkerRegistry
from services.worker.engines.errors import ProviderFailed
from services.worker.rate_limits.limiter import RateLimiters, rate_limit_key
from services.worker.rate_limits.nats import NatsRateLimits
from services.worker.rate_limits.waits import Backoff
from tests.fakes.eventually import eventually
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness
from tests.fakes.thorough_cases import first_cases
from tests.fakes.worker.scripted_engine import ScriptedEngine
from tests.fakes.worker.worker_harness import (
    POOL,
    RUN,
    WorkerHarness,
    work_shard,
    worker_harness,
    worker_in_process,
)
from tests.fakes.worker.worker_process import worker_process
from tests.harness.model_server_process import ModelServerProcess, model_server_process
from tests.harness.servers import RunningServer

ONE_TRY = {"max_tries": "1"}
GROUPS = {POOL.name: POOL.name}


@pytest.fixture
async def harness(nats: RunningServer) -> AsyncIterator[WorkerHarness]:
    async with worker_harness(nats.address) as harness:
        yield harness


@pytest.fixture
async def model_server() -> AsyncIterator[ModelServerProcess]:
    async with model_server_process() as server:
        yield server


@asynccontextmanager
async def leader(nats_url: str) -> AsyncIterator[NatsQuotas]:
    """What the leading scheduler does for rate limits; gives the bucket that it writes to."""
    connection = await connect_nats(nats_url, "leader")
    clock, tracker = SystemClock(), RateLimitTracker(GROUPS)
    quotas = NatsQuotas(Bucket(JetStream(connection), streams.QUOTAS_BUCKET))
    await NatsRateReports(connection, tracker, RequestRetryBudget(0.2), clock).start()
    leading = asyncio.create_task(AssignQuotas(tracker, quotas, clock).lead(), name="assign quotas")
    try:
        yield quotas
    finally:
        await cancel_all([leading])
        await connection.close()


async def send_samples(harness: WorkerHarness, count: int, first_shard: int = 0) -> None:
    for shard in range(first_shard, first_shard + count // 16):
        await harness.send(work_shard(shard, range(shard * 16, shard * 16 + 16)))


@first_cases(1, "tells", ["nothing", "seconds", "date"])
async def test_a_storm_of_refusals_costs_no_sample(
    harness: WorkerHarness, nats: RunningServer, model_server: ModelServerProcess, tmp_path: Path, tells: str
) -> None:
    await model_server.control(rate_limit={"rate": 64, "burst": 32, "tells": tells})
    await send_samples(harness, 96)
    async with worker_process(nats.address, model_server.url, tmp_path, **ONE_TRY):
        await harness.until_answered(96)
        await harness.until_settled()
    assert all(outcome.HasField("answer") for outcome in harness.outcomes)
    assert set(harness.counts.values()) == {1}
    stats = await model_server.stats()
    assert stats["answered"] == 96
    # The first of those that were refused together held the others back.
    assert 0 < stats["limited"] < 96


async def test_waiting_requests_are_abandoned_when_the_run_is_cancelled(
    harness: WorkerHarness, nats: RunningServer, model_server: ModelServerProcess, tmp_path: Path
) -> None:
    await model_server.control(rate_limit={"rate": 0.001, "burst": 2, "tells": "seconds"})
    await send_samples(harness, 96)
    async with worker_process(nats.address, model_server.url, tmp_path, **ONE_TRY):
        await harness.until_answered(2)
        asked = (await model_server.stats())["requests"]
        await harness.publish_state(run_pb2.RUN_STATE_CANCELLED)
        await harness.until_settled(2)
        assert (await model_server.stats())["requests"] == asked
    assert set(harness.counts.values()) == {1}
    assert len(harness.outcomes) == 2


async def test_a_throttled_provider_is_reported_with_its_resume_time(
    harness: WorkerHarness, nats: RunningServer, model_server: ModelServerProcess, tmp_path: Path
) -> None:
    await model_server.control(rate_limit={"rate": 0.001, "burst": 2, "tells": "seconds"})
    await send_samples(harness, 16)
    clock = SystemClock()
    heartbeats = Bucket(harness.jetstream, streams.heartbeat_bucket(POOL.name))
    registry = NatsWorkerRegistry({POOL.name: heartbeats}, clock, lambda: None)
    listening = asyncio.create_task(registry.listen())
    async with worker_process(nats.address, model_server.url, tmp_path):
        await eventually(
            lambda: any(worker.throttled_servers for worker in registry.workers()), "it is shown", 10
        )
        [worker] = registry.workers()
        assert clock.now() < worker.throttled_servers[""] < clock.now() + timedelta(seconds=70)
    await cancel_all([listening])


async def test_time_in_the_rate_limiter_is_no_request_time(
    harness: WorkerHarness, nats: RunningServer, model_server: ModelServerProcess, tmp_path: Path
) -> None:
    await model_server.control(rate_limit={"rate": 16, "burst": 8, "tells": "seconds"})
    await send_samples(harness, 32)
    limits = {**ONE_TRY, "request_timeout_seconds": "0.8"}
    async with worker_process(nats.address, model_server.url, tmp_path, **limits):
        await harness.until_answered(32)
    assert all(outcome.HasField("answer") for outcome in harness.outcomes)
    assert max(outcome.timing.total_seconds for outcome in harness.outcomes) < 0.8


async def test_the_leader_finds_the_limit_and_the_next_worker_keeps_to_it(
    harness: WorkerHarness, nats: RunningServer, model_server: ModelServerProcess, tmp_path: Path
) -> None:
    limiter = QuotaKey(POOL.name, rate_limit_key("openai", model_server.url, None))
    await model_server.control(rate_limit={"rate": 40, "burst": 10})
    await send_samples(harness, 1600)
    async with leader(nats.address) as quotas:

        async def is_found() -> bool:
            quota = (await quotas.stored()).get(limiter, RateQuota())
            return quota.requests_per_second is not None and quota.requests_per_second < 60

        async with worker_process(nats.address, model_server.url, tmp_path):
            await eventually(is_found, "a limit is granted", 30)
    quota = (await quotas_of(nats.address))[limiter]
    assert quota.requests_per_second is not None
    assert sum(quota.shares.values()) == pytest.approx(1.0)
    # No leader any more: what was granted last holds, also for a worker that comes anew.
    await model_server.control(rate_limit=None, reset_stats=True)
    before = len(harness.counts)
    async with worker_process(nats.address, model_server.url, tmp_path):
        await harness.until_answered(before + 20)
        clock = SystemClock()
        started, begun = clock.monotonic(), len(harness.counts)
        await harness.until_answered(begun + 40)
        rate = (len(harness.counts) - begun) / (clock.monotonic() - started)
    assert rate < 1.5 * quota.requests_per_second


async def quotas_of(nats_url: str) -> dict[QuotaKey, RateQuota]:
    connection = await connect_nats(nats_url, "reader")
    try:
        return dict(await NatsQuotas(Bucket(JetStream(connection), streams.QUOTAS_BUCKET)).stored())
    finally:
        await connection.close()


async def test_an_allowed_limit_is_kept_before_the_first_429(
    harness: WorkerHarness, nats: RunningServer, model_server: ModelServerProcess, tmp_path: Path
) -> None:
    limiter = QuotaKey(POOL.name, rate_limit_key("openai", model_server.url, None))
    headers = {"limit": "1200", "remaining": "1199", "reset": "50ms"}
    named = {f"x-ratelimit-{name}-requests": value for name, value in headers.items()}
    await model_server.control(headers=named, latency_seconds=0.02)
    await send_samples(harness, 1600)
    async with leader(nats.address) as quotas:

        async def is_stored() -> bool:
            return limiter in await quotas.stored()

        async with worker_process(nats.address, model_server.url, tmp_path):
            await eventually(is_stored, "a limit is granted", 30)
        quota = (await quotas.stored())[limiter]
    assert quota.requests_per_second == pytest.approx(0.98 * 20)
    assert (await model_server.stats())["limited"] == 0


async def test_workers_learn_when_a_run_has_spent_its_request_retry_budget(nats: RunningServer) -> None:
    connection = await connect_nats(nats.address, "scheduler")
    budget, bucket = RequestRetryBudget(0.2), Bucket(JetStream(connection), streams.RUNS_BUCKET)
    await NatsRateReports(connection, RateLimitTracker(GROUPS), budget, SystemClock()).start()
    controls = NatsRunControls(connection, bucket, budget, SystemClock())
    run = await SchedulerHarness().submit()

    async def is_reported() -> bool:
        await controls.refresh(run)
        reported = work_messages_pb2.RunControl.FromString(await bucket.get(run.run_id) or b"")
        return reported.is_request_retry_budget_spent

    assert not await is_reported()
    report = work_messages_pb2.RateReport(
        worker_id="w1", rate_limit_key="p", request_retries={run.run_id: 101}
    )
    await connection.publish(messaging.rate_subject(run.pool, "p"), report.SerializeToString())
    await eventually(is_reported, "the budget is spent", 5)
    await connection.close()


async def test_a_report_that_does_not_fit_a_message_does_not_block_others(nats: RunningServer) -> None:
    reported: list[str] = []

    async def take(message: object) -> None:
        reported.append(work_messages_pb2.RateReport.FromString(message.data).rate_limit_key)  # type: ignore[attr-defined]  # a message of nats-py

    connection = await connect_nats(nats.address, "worker")
    await connection.subscribe(messaging.ALL_RATES, cb=take)
    clock = SystemClock()
    limiters = RateLimiters(
        clock=clock, backoff=Backoff(0.1, 1.0), provider="openai", base_url="http://one.test"
    )
    good = limiters.for_server("http://two.test")
    for limiter in limiters:
        limiter.on_sent()
    limiters.own.sent = 2**63
    bucket = Bucket(JetStream(connection), streams.QUOTAS_BUCKET)
    rates = NatsRateLimits(
        connection=connection,
        bucket=bucket,
        pool=POOL.name,
        worker_id="w1",
        limiters=limiters,
        clock=clock,
    )
    await rates.report_due()
    await eventually(lambda: reported == [good.key], "the other limit is reported", 5)
    await connection.close()


async def test_requests_sent_again_are_reported_until_the_run_may_try_no_more(
    nats: RunningServer, harness: WorkerHarness
) -> None:
    request_retries: list[int] = []

    async def take(message: object) -> None:
        report = work_messages_pb2.RateReport.FromString(message.data)  # type: ignore[attr-defined]  # a message of nats-py
        request_retries.append(report.request_retries[RUN])

    async def failing(_: str) -> str:
        raise ProviderFailed("500")

    await harness.connection.subscribe(messaging.ALL_RATES, cb=take)
    await harness.send(work_shard(1, range(4)))
    async with worker_in_process(nats.address, ScriptedEngine(failing)):
        await eventually(
            lambda: bool(request_retries) and request_retries[-1] >= 4, "request retries are reported", 10
        )
        assert not harness.outcomes
        spent = work_messages_pb2.RunControl(
            state=run_pb2.RUN_STATE_RUNNING, epoch=1, is_request_retry_budget_spent=True
        )
        await Bucket(harness.jetstream, streams.RUNS_BUCKET).put(RUN, spent.SerializeToString())
        await harness.until_answered(4, 10)
    assert {outcome.failure.failure_class for outcome in harness.outcomes} == {
        outcome_pb2.FAILURE_CLASS_PROVIDER_ERROR
    }
