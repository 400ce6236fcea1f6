"""A compromised worker harms its own pool only: a real NATS with its users, and the scheduler's readers."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from nats.js.errors import APIError

from proctor.stack.servers.nats import NatsServer
from proctor.v1 import work_messages_pb2
from proctor.values import messaging
from proctor.values.priority import Priority
from proctor.values.providers.worker import MAX_POOL_WORKERS
from proctor.values.run import RunId
from proctor.values.scoring import ScoringMethod
from services.common.clock import SystemClock
from services.common.lifecycle import cancel_all
from services.common.nats import streams
from services.common.nats.bucket import Bucket
from services.common.nats.jetstream import JetStream
from services.common.nats.specs import ConsumerSpec
from services.common.nats.streams import HEARTBEAT_BOUNDS, heartbeat_bucket, switch_bucket
from services.scheduler.rate_limits.assign_quotas import AssignQuotas, QuotaKey
from services.scheduler.rate_limits.key_groups import key_groups
from services.scheduler.rate_limits.nats import NatsQuotas, NatsRateReports
from services.scheduler.rate_limits.rate_meter import RateLimitTracker, RequestRetryBudget
from services.scheduler.runs.lifecycle.nats import NatsRunControls
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.workers.nats import NatsWorkerRegistry
from services.scheduler.workers.proto import HEARTBEAT
from services.scheduler.workers.worker import Worker
from services.worker.rate_limits.limiter import AllowedLimits, RateLimiters, rate_limit_key
from services.worker.rate_limits.nats import NatsRateLimits
from services.worker.rate_limits.waits import Backoff
from tests.fakes.eventually import eventually
from tests.fakes.pools import provider_pool
from tests.fakes.scheduler.surroundings import START
from tests.integration.stack.nats_members import Member, member, nats_with_users

POOLS = ("a", "b")
URL = "http://b.test/v1"
GROUPS = key_groups([provider_pool("a"), provider_pool("b", base_url=URL)])
KEY = rate_limit_key("openai", URL, None)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[NatsServer]:
    async with nats_with_users(tmp_path_factory.mktemp("nats"), POOLS) as made:
        yield made


class Forger:
    """A worker of pool a that reports rates in every way that NATS leaves it."""

    def __init__(self, worker: Member, scheduler: Member) -> None:
        self._worker = worker
        self._scheduler = scheduler

    async def send(self, report: work_messages_pb2.RateReport) -> None:
        """As pool a, as pool b, and through the stream of pool a: JetStream delivers to any subject."""
        payload, key = report.SerializeToString(), report.rate_limit_key
        heard = await self._scheduler.client.subscribe(messaging.ALL_RATES)
        await self._scheduler.client.flush()
        publish = self._worker.client.publish
        await publish(messaging.rate_subject("b", key), payload)
        # Its last tokens are those of the subject that is forged.
        for stored in (f"work.a.m.b.{key}", "work.a.m.high.r"):
            await self._worker.client.jetstream().publish(stored, payload)
        consumer = streams.work_consumer("a", "m", Priority.HIGH, 30)
        every = ConsumerSpec(consumer.stream, "every", messaging.work_of_pool("a"), 600, 100)
        await JetStream(self._worker.client).make_consumer(every)
        pulls = f"$JS.API.CONSUMER.MSG.NEXT.{every.stream.name}.{every.durable}"
        await publish(pulls, b"2", reply=messaging.rate_subject("b", key))
        await publish(messaging.rate_subject("a", key), payload)
        awaited = {f"work.a.m.b.{key}", "work.a.m.high.r", messaging.rate_subject("a", key)}
        while awaited:
            awaited.discard((await heard.next_msg(timeout=20)).subject)
        await heard.unsubscribe()


@asynccontextmanager
async def forger(server: NatsServer) -> AsyncIterator[Forger]:
    worker, scheduler = await member(server, "worker-a"), await member(server, "scheduler")
    try:
        yield Forger(worker, scheduler)
        assert await worker.is_refused()
        assert all("rates.b." in each for each in worker.refused), worker.refused
    finally:
        for each in (worker, scheduler):
            await each.client.close()


@asynccontextmanager
async def beside(*loops: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        yield
    finally:
        await cancel_all(tasks)


async def test_forged_reports_under_the_key_of_another_pool_do_not_slow_it_down(server: NatsServer) -> None:
    scheduler, victim = await member(server, "scheduler"), await member(server, "worker-b")
    clock, tracker = SystemClock(), RateLimitTracker(GROUPS)
    quotas = NatsQuotas(Bucket(JetStream(scheduler.client), streams.QUOTAS_BUCKET))
    await NatsRateReports(scheduler.client, tracker, RequestRetryBudget(0.2), clock).start()
    await scheduler.client.flush()
    limiters = RateLimiters(clock=clock, backoff=Backoff(), provider="openai", base_url=URL)
    limiters.on_allowed("", AllowedLimits(requests=20.0))
    rates = NatsRateLimits(
        connection=victim.client,
        bucket=Bucket(JetStream(victim.client), streams.QUOTAS_BUCKET),
        pool="b",
        worker_id="w",
        limiters=limiters,
        clock=clock,
    )

    async def report() -> None:
        while True:
            limiters.own.on_sent()
            await rates.report_due()
            await asyncio.sleep(0.1)

    async def quota_of(pool: str) -> float | None:
        quota = (await quotas.stored()).get(QuotaKey(pool, KEY))
        return quota.requests_per_second if quota else None

    async def both_are_assigned() -> bool:
        return await quota_of("a") is not None and await quota_of("b") is not None

    forged = work_messages_pb2.RateReport(
        worker_id="w", rate_limit_key=KEY, rate_limited=10**6, allowed_requests_per_second=0.01
    )
    forged.resume_at.FromDatetime(clock.now() + timedelta(days=1))
    leader = AssignQuotas(tracker, quotas, clock)
    async with forger(server) as attacker, beside(report(), rates.follow_quotas(), leader.lead()):
        await attacker.send(forged)
        await eventually(both_are_assigned, "each pool has a quota under the key", 30)
        # Its own pool has what it reported.
        assert await quota_of("a") == pytest.approx(0.0098)
        for _ in range(3):
            await attacker.send(forged)
            await asyncio.sleep(0.5)
        assert await quota_of("b") == pytest.approx(0.98 * 20)
        assert not limiters.own.throttled_seconds()
    assert not await victim.is_refused(), victim.refused
    for each in (scheduler, victim):
        await each.client.close()


async def test_forged_request_retries_do_not_spend_the_budget_of_a_run_of_another_pool(
    server: NatsServer,
) -> None:
    scheduler, worker = await member(server, "scheduler"), await member(server, "worker-b")
    budget = RequestRetryBudget(0.2)
    await NatsRateReports(scheduler.client, RateLimitTracker(GROUPS), budget, SystemClock()).start()
    await scheduler.client.flush()
    bucket = Bucket(JetStream(scheduler.client), streams.RUNS_BUCKET)
    controls = NatsRunControls(scheduler.client, bucket, budget, SystemClock())
    order = RunOrder("toy", "openai/fake")
    run = Run(RunId("attacked"), order, "ann", "b", ScoringMethod.GENERATE, START, total=20)

    async def is_spent() -> bool:
        await controls.refresh(run)
        control = work_messages_pb2.RunControl.FromString(await bucket.get(run.run_id) or b"")
        return control.is_request_retry_budget_spent

    assert not await is_spent()
    report = work_messages_pb2.RateReport(worker_id="w", rate_limit_key="invented")
    report.request_retries[run.run_id] = 10**6
    async with forger(server) as attacker:
        await attacker.send(report)
        report.rate_limit_key = KEY
        await attacker.send(report)
    assert not await is_spent()
    # A worker of its own pool spends it.
    report.request_retries[run.run_id] = 101
    await worker.client.publish(messaging.rate_subject("b", KEY), report.SerializeToString())
    await eventually(is_spent, "the budget is spent", 30)
    for each in (scheduler, worker):
        await each.client.close()


async def test_reports_of_too_many_bytes_or_runs_are_dropped(server: NatsServer) -> None:
    scheduler, worker = await member(server, "scheduler"), await member(server, "worker-b")
    budget = RequestRetryBudget(0.2)
    await NatsRateReports(scheduler.client, RateLimitTracker(GROUPS), budget, SystemClock()).start()
    await scheduler.client.flush()

    def is_spent(run_id: str) -> bool:
        return budget.is_spent("b", run_id, 1, 20)

    # By the run that is only in it: 99 kB, 9,000 runs, and one as it should be.
    padded = [f"{i:0>98}" for i in range(990)]
    reports = {"large": padded, "many": [f"{i:x}" for i in range(9_000)], "last": []}
    for run_id, others in reports.items():
        assert not is_spent(run_id)
        report = work_messages_pb2.RateReport(worker_id="w", rate_limit_key=KEY)
        for each in (run_id, *others):
            report.request_retries[each] = 101
        await worker.client.publish(messaging.rate_subject("b", KEY), report.SerializeToString())
    await eventually(lambda: is_spent("last"), "the last report is read", 30)
    assert [run_id for run_id in reports if is_spent(run_id)] == ["last"]
    for one in (scheduler, worker):
        await one.client.close()


def heartbeat(pool: str, worker_id: str) -> bytes:
    return HEARTBEAT.to_proto(Worker(worker_id, pool, "openai", "openai", concurrency=8)).SerializeToString()


@asynccontextmanager
async def live_pools(server: NatsServer) -> AsyncIterator[tuple[Member, Member, Member]]:
    """The scheduler and a worker of each pool, which has a heartbeat and has switched its model."""
    members = [await member(server, user) for user in ("scheduler", "worker-a", "worker-b")]
    scheduler, *workers = members
    for pool, worker in zip(POOLS, workers, strict=True):
        await Bucket(JetStream(worker.client), heartbeat_bucket(pool)).put("real", heartbeat(pool, "real"))
        switches = Bucket(JetStream(worker.client), switch_bucket(pool))
        revision = await switches.revision(messaging.LAST_SWITCH)
        assert await switches.update(messaging.LAST_SWITCH, b"real", revision=revision)
    try:
        yield scheduler, workers[0], workers[1]
    finally:
        for each in members:
            await each.client.close()


@pytest.mark.parametrize(
    ("header", "value", "error"),
    [
        ("Nats-Rollup", "all", "rollup not permitted"),
        ("Nats-Rollup", "sub", "rollup not permitted"),
        ("Nats-TTL", "never", "per-message ttl is disabled"),
        ("Nats-TTL", "1h", "per-message ttl is disabled"),
    ],
)
async def test_no_header_of_a_worker_removes_keys_or_keeps_one(
    server: NatsServer, header: str, value: str, error: str
) -> None:
    async with live_pools(server) as (scheduler, thief, owner):
        switches = Bucket(JetStream(owner.client), switch_bucket("b"))
        before = await switches.revision(messaging.LAST_SWITCH)
        for subject in ("$KV.WORKERS_a.forged", "$KV.SWITCHES_a.last", "$KV.QUARANTINE_a.x"):
            with pytest.raises(APIError) as refused:
                await thief.client.jetstream().publish(subject, b"forged", headers={header: value})
            assert error in str(refused.value).lower()
        assert not await thief.is_refused(), thief.refused
        for subject in ("$KV.WORKERS_b.real", "$KV.SWITCHES_b.last", "$KV.QUARANTINE_b.x"):
            await thief.client.publish(subject, b"forged", headers={header: value})
        assert await thief.is_refused()
        assert len(thief.refused) == 3
        for pool in POOLS:
            heartbeats = Bucket(JetStream(scheduler.client), heartbeat_bucket(pool))
            assert (await heartbeats.entries())["real"] == heartbeat(pool, "real")
        assert await switches.revision(messaging.LAST_SWITCH) == before > 0
        assert not await switches.update(messaging.LAST_SWITCH, b"other", revision=0)


async def test_scheduler_that_starts_knows_all_pools_however_many_workers_one_invents(
    server: NatsServer,
) -> None:
    async with live_pools(server) as (scheduler, thief, owner):
        for number in range(MAX_POOL_WORKERS * 2):
            name = f"invented-{number}"
            await thief.client.publish(f"$KV.WORKERS_a.{name}", heartbeat("a", name))
        await Bucket(JetStream(thief.client), heartbeat_bucket("a")).put("real", heartbeat("a", "real"))
        # It may have taken longer than a heartbeat lives.
        await Bucket(JetStream(owner.client), heartbeat_bucket("b")).put("real", heartbeat("b", "real"))
        state = (await scheduler.client.jetstream().stream_info("KV_WORKERS_a")).state
        assert state.messages <= MAX_POOL_WORKERS
        assert state.bytes <= HEARTBEAT_BOUNDS.total_bytes
        buckets = {pool: Bucket(JetStream(scheduler.client), heartbeat_bucket(pool)) for pool in POOLS}
        registry = NatsWorkerRegistry(buckets, SystemClock(), lambda: None)

        def both_are_known() -> bool:
            known = {(worker.pool, worker.worker_id) for worker in registry.workers()}
            return {("a", "real"), ("b", "real")} <= known

        async with beside(registry.listen()):
            await eventually(both_are_known, "the worker of each pool is known", 30)
            assert len(registry.table().pool("a").by_key) <= MAX_POOL_WORKERS
            assert len(registry.table().pool("b").by_key) == 1
        assert not await thief.is_refused(), thief.refused


async def test_value_beyond_the_bounds_of_its_bucket_is_refused(server: NatsServer) -> None:
    async with live_pools(server) as (_, thief, _):
        for bucket, key in ((heartbeat_bucket("a"), "real"), (switch_bucket("a"), messaging.LAST_SWITCH)):
            assert bucket.bounds is not None
            large = b"x" * (bucket.bounds.value_bytes + 1)
            with pytest.raises(APIError, match="message size exceeds maximum"):
                await Bucket(JetStream(thief.client), bucket).put(key, large)
