"""Creates, connects and closes all parts of a worker; no other module knows the concrete classes."""

import asyncio
import os
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

from nats.aio.client import Client

from proctor.values.providers.base_urls import may_ask, parse_allowed
from proctor.values.providers.models import EngineLoad
from proctor.values.providers.pool import Pool, Provider
from proctor.values.scoring import ScoringMethod
from services.common.clock import Clock, ServerClock
from services.common.grpc.server import GrpcServer, serve_grpc
from services.common.lifecycle import every
from services.common.nats import streams
from services.common.nats.access import NatsAccess
from services.common.nats.bucket import Bucket
from services.common.nats.connection import TRANSIENT_NATS, connect_nats
from services.common.nats.jetstream import JetStream
from services.common.structured_logs import get_logger
from services.worker import metrics
from services.worker.consumer.consume_shards import ConsumeShards
from services.worker.consumer.execute_shard import ConcurrencyLimit, ExecuteShard
from services.worker.consumer.in_flight import InFlightShards
from services.worker.consumer.nats import NatsShardSource
from services.worker.consumer.nats_registry import (
    HeartbeatSources,
    NatsHeartbeat,
    NatsWorkerRegistry,
    WorkerIdentity,
)
from services.worker.consumer.prefetch import Prefetch, PrefetchLimits
from services.worker.consumer.process_shard import ProcessShard, WorkerContext
from services.worker.consumer.select_model import SelectModel, SwitchPolicy
from services.worker.engines.anthropic.api import AnthropicApi
from services.worker.engines.engine import Engine, EngineCache, UnsupportedRequest
from services.worker.engines.gemini.api import GeminiApi
from services.worker.engines.http.provider_engine import HttpEngine, ProviderApi
from services.worker.engines.http.server import Endpoint
from services.worker.engines.ollama.api import OllamaApi
from services.worker.engines.openai.api import OpenAIApi, server_at
from services.worker.execution.batch_outcomes import OutcomeBatcher
from services.worker.execution.execute_sample import ExecuteSample, RetryPolicy
from services.worker.execution.nats import NatsOutcomePublisher, ServerTime, follow_run_states
from services.worker.execution.run_states import RefusedRuns, RunStates
from services.worker.models.load_models import ModelLoader
from services.worker.models.nats import ListEngineModels, NatsModelListAnswers
from services.worker.models.pools_file import read_key, read_pool
from services.worker.rate_limits.limiter import RateLimiters
from services.worker.rate_limits.nats import CHECK_SECONDS, NatsRateLimits
from services.worker.rate_limits.waits import Backoff
from services.worker.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.worker.sandboxes.ports import SandboxEngine
from services.worker.settings import WorkerSettings
from services.worker.verification.check_code import CheckCode

_PUBLISH_SECONDS = 5.0
_HEARTBEAT_CHECK_SECONDS = 0.25
_CANCEL_AGAIN_SECONDS = 0.2
_BUCKET_CHECK_SECONDS = 20.0

log = get_logger()


@dataclass(frozen=True, slots=True)
class WorkerResources:
    """The settings and connections of a worker process; `clock` shows the time of NATS."""

    settings: WorkerSettings
    identity: WorkerIdentity
    connection: Client
    clock: ServerClock
    sandboxes: SandboxEngine


@dataclass(frozen=True, slots=True)
class Parts:
    """The connected parts of a worker."""

    context: WorkerContext
    consumer: ConsumeShards
    batcher: OutcomeBatcher
    engines: EngineCache
    heartbeat: NatsHeartbeat


class RunningWorker:
    """SERVING while it consumes shards; the model may still be loading."""

    def __init__(
        self, parts: Parts, tasks: Sequence[asyncio.Task[None]], health: GrpcServer, drain_seconds: float
    ) -> None:
        self._parts = parts
        self._tasks = tasks
        self._health = health
        self._drain_seconds = drain_seconds

    async def set_ready(self, is_ready: bool) -> None:  # noqa: FBT001  # the port of lifecycle
        await self._health.set_serving(is_ready)

    async def wait_failed(self) -> None:
        ended, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()

    async def stop_taking_work(self) -> None:
        self._parts.consumer.stop()

    async def drain(self) -> None:
        """Shards whose outcomes are not published in time are not acknowledged, so they are redelivered."""
        try:
            async with asyncio.timeout(self._drain_seconds + _PUBLISH_SECONDS):
                await self._parts.consumer.drain(self._drain_seconds)
                await self._parts.batcher.drain()
        except TimeoutError:
            log.warning("drained in part; the rest will be redelivered")


@asynccontextmanager
async def running_worker(settings: WorkerSettings) -> AsyncIterator[RunningWorker]:
    pool = read_pool(settings.pools_file, settings.pool)
    identity = WorkerIdentity(f"{pool.name}-{socket.gethostname()}-{uuid.uuid4().hex[:8]}", pool)
    async with AsyncExitStack() as opened:
        health = await serve_grpc(settings.health_address, (), ())
        opened.push_async_callback(health.stop, 0)
        connection = await connect_nats(NatsAccess.of(settings), identity.worker_id)
        opened.push_async_callback(connection.close)
        sandboxes = BubblewrapEngine(find_bubblewrap())
        opened.push_async_callback(sandboxes.close)
        around = WorkerResources(settings, identity, connection, ServerClock(), sandboxes)
        limiters = make_rate_limiters(pool, around.clock)
        engine = make_engine(pool, settings, limiters)
        opened.push_async_callback(engine.close)
        parts = connect_parts(around, engine, limiters)
        opened.push_async_callback(parts.engines.close)
        opened.push_async_callback(leave, parts.heartbeat)
        tasks = start_loops(around, parts, limiters)
        opened.push_async_callback(end_loops, parts, tasks)
        yield RunningWorker(parts, tasks, health, settings.drain_seconds)


def make_rate_limiters(pool: Pool, clock: Clock) -> RateLimiters:
    backoff, provider = Backoff(), pool.provider
    if provider is None:
        return RateLimiters(clock, backoff)
    key = read_key(provider.api_key_env, os.environ)
    return RateLimiters(clock, backoff, provider.name, provider.base_url, key)


def make_engine(pool: Pool, settings: WorkerSettings, limiters: RateLimiters) -> Engine:
    """vLLM is installed in an environment of its own, so it is imported only for pools that use it."""
    if pool.provider is None:
        return _make_vllm(pool)
    return _make_remote(pool, pool.provider, settings, limiters)


def _make_vllm(pool: Pool) -> Engine:
    from services.worker.engines.vllm.engine import VllmEngine  # noqa: PLC0415
    from services.worker.engines.vllm.model_files import VllmSettings  # noqa: PLC0415

    return VllmEngine(VllmSettings(pool.models))


def _make_remote(pool: Pool, provider: Provider, settings: WorkerSettings, limiters: RateLimiters) -> Engine:
    endpoint = Endpoint(
        base_url=provider.base_url,
        provider=provider.name,
        api_key=read_key(provider.api_key_env, os.environ),
        api_key_variable=provider.api_key_env,
        timeout_seconds=settings.request_timeout_seconds,
        connections=pool.concurrency,
        on_advertised=limiters.on_advertised,
    )
    return HttpEngine(_api_of(pool, provider.base_url), endpoint)


def _api_of(pool: Pool, base_url: str) -> ProviderApi:
    match pool.engine:
        case "ollama":
            return OllamaApi()
        case "gemini":
            return GeminiApi()
        case "anthropic":
            return AnthropicApi()
        case _:
            has_loglikelihood = ScoringMethod.LOGLIKELIHOOD in pool.can
            return OpenAIApi(has_loglikelihood, pool.constrained_field, server_at(base_url))


def engines_by_url(
    pool: Pool, settings: WorkerSettings, limiters: RateLimiters
) -> Callable[[str], Engine] | None:
    """Makes engines for other servers, without the pool's API key.

    The scheduler has checked the address of an order, but a message may come from elsewhere.
    """
    provider, allowed = pool.provider, parse_allowed(settings.allowed_base_urls)
    if provider is None or pool.engine != "openai":
        return None

    def make(base_url: str) -> Engine:
        if not may_ask(base_url, allowed):
            raise UnsupportedRequest("This worker's PROCTOR_ALLOWED_BASE_URLS does not allow the base_url.")
        keyless = replace(provider, base_url=base_url, api_key_env="")
        return _make_remote(pool, keyless, settings, limiters)

    return make


def connect_parts(around: WorkerResources, engine: Engine, limiters: RateLimiters) -> Parts:
    settings, identity, clock = around.settings, around.identity, around.clock
    pool = identity.pool
    jetstream = JetStream(around.connection, bucket_check_seconds=_BUCKET_CHECK_SECONDS)
    loader = ModelLoader(
        engine=engine, groups=pool.groups, clock=clock, retry_seconds=settings.retry_load_seconds
    )
    publisher = NatsOutcomePublisher(
        jetstream=jetstream, worker_id=identity.worker_id, environment=lambda: loader.environment
    )
    batcher = OutcomeBatcher(publisher=publisher, new_id=lambda: uuid.uuid4().hex)
    context = WorkerContext(
        in_flight=InFlightShards(),
        prefetch=Prefetch(limits=PrefetchLimits.for_concurrency(pool.concurrency), clock=clock),
        run_states=RunStates(),
        refused_runs=RefusedRuns(clock),
    )
    engines = EngineCache(own=engine, make_other=engines_by_url(pool, settings, limiters))
    executor = ExecuteShard(
        execute_sample=_make_execute_sample(around, context, engines, limiters),
        batcher=batcher,
        concurrency=ConcurrencyLimit(pool.concurrency),
        prefetch=context.prefetch,
    )
    source = NatsShardSource(
        jetstream=jetstream,
        pool=pool,
        clock=clock,
        ack_wait_seconds=settings.ack_wait_seconds,
        may_start=context.run_states.may_start,
    )
    sources = HeartbeatSources(
        context=context,
        loader=loader,
        concurrency=executor.concurrency,
        rate_limiters=limiters,
        clock=clock,
    )
    heartbeat = NatsHeartbeat(jetstream=jetstream, identity=identity, sources=sources)
    registry = NatsWorkerRegistry(jetstream, identity, heartbeat)
    consumer = ConsumeShards(
        source=source,
        loader=loader,
        processor=ProcessShard(executor=executor, batcher=batcher, context=context, clock=clock),
        context=context,
        selector=_make_selector(around, registry, source, loader),
    )
    _watch(executor.concurrency, loader, limiters)
    return Parts(context, consumer, batcher, engines, heartbeat)


def _watch(concurrency: ConcurrencyLimit, loader: ModelLoader, limiters: RateLimiters) -> None:
    """These are read with the metrics."""
    metrics.IN_FLIGHT.set_function(lambda: concurrency.in_use)
    metrics.CONCURRENCY.set(concurrency.limit)
    metrics.QUOTA_WAITS.set_function(lambda: sum(limiter.waiting for limiter in limiters))
    if not loader.serves_any:
        load = partial(_engine_load, loader)
        metrics.KV_CACHE.set_function(lambda: load().kv_cache_usage)
        metrics.ENGINE_REQUESTS.labels("running").set_function(lambda: load().running_requests)
        metrics.ENGINE_REQUESTS.labels("waiting").set_function(lambda: load().waiting_requests)


def _engine_load(loader: ModelLoader) -> EngineLoad:
    """Nothing while no model is loaded."""
    return loader.engine_load or EngineLoad()


def _make_execute_sample(
    around: WorkerResources, context: WorkerContext, engines: EngineCache, limiters: RateLimiters
) -> ExecuteSample:
    slots = around.settings.sandbox_slots or os.cpu_count() or 1
    check_code = CheckCode(
        engine=around.sandboxes, slots=asyncio.Semaphore(slots), new_word=lambda: uuid.uuid4().hex
    )
    return ExecuteSample(
        check_code=check_code,
        engines=engines,
        clock=around.clock,
        retry_policy=RetryPolicy(backoff=Backoff(), max_tries=around.settings.max_tries),
        rate_limiters=limiters,
        run_states=context.run_states,
        refused_runs=context.refused_runs,
    )


def _make_selector(
    around: WorkerResources, registry: NatsWorkerRegistry, source: NatsShardSource, loader: ModelLoader
) -> SelectModel:
    settings = around.settings
    policy = SwitchPolicy(
        idle_seconds=settings.switch_when_idle_seconds,
        min_residency_seconds=settings.min_model_residency_seconds,
    )
    return SelectModel(source=source, registry=registry, loader=loader, clock=around.clock, policy=policy)


def start_loops(around: WorkerResources, parts: Parts, limiters: RateLimiters) -> list[asyncio.Task[None]]:
    """The worker fails where any of them ends by itself."""
    settings, identity, connection = around.settings, around.identity, around.connection
    jetstream = JetStream(connection, bucket_check_seconds=_BUCKET_CHECK_SECONDS)
    consumer, context = parts.consumer, parts.context
    beat = partial(parts.heartbeat.send_if_due, settings.heartbeat_seconds)
    lister = ListEngineModels(engine=parts.engines.own, limit_seconds=settings.list_seconds)
    lists = NatsModelListAnswers(connection=connection, pool=identity.pool.name, lister=lister)
    loops: dict[str, Coroutine[None, None, None]] = {
        "consume shards": consumer.run(),
        "publish outcomes": parts.batcher.run(),
        "extend ack deadlines": every(
            settings.ack_wait_seconds / 3, context.in_flight.extend_ack_deadlines, name="extend ack deadlines"
        ),
        "follow run states": follow_run_states(jetstream, context.run_states, consumer.abandon_ended),
        "heartbeat": every(_HEARTBEAT_CHECK_SECONDS, beat, name="heartbeat"),
        "list models": lists.answer(),
        "learn the time": every(1.0, ServerTime(jetstream, around.clock).learn_if_due, name="learn the time"),
    }
    if limiters.own.key:  # an engine in the worker has no rate limit
        rates = NatsRateLimits(
            connection=connection,
            bucket=Bucket(jetstream, streams.QUOTAS_BUCKET),
            worker_id=identity.worker_id,
            limiters=limiters,
            clock=around.clock,
        )
        loops["report rates"] = every(CHECK_SECONDS, rates.report_due, name="report rates")
        loops["follow quotas"] = rates.follow_quotas()
    return [asyncio.create_task(loop, name=name) for name, loop in loops.items()]


async def end_loops(parts: Parts, tasks: Sequence[asyncio.Task[None]]) -> None:
    """The pulls end by themselves once prefetching is closed; the other tasks are cancelled."""
    parts.consumer.stop()
    await cancel_all(tasks)


async def cancel_all(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Until they have ended: nats-py waits by Python 3.11's `wait_for`, which may swallow a cancellation."""
    running = set(tasks)
    while running:
        for task in running:
            task.cancel()
        _, running = await asyncio.wait(running, timeout=_CANCEL_AGAIN_SECONDS)


async def leave(heartbeat: NatsHeartbeat) -> None:
    """Deletes the heartbeat; if NATS is unreachable, it expires by itself."""
    with suppress(*TRANSIENT_NATS):
        await heartbeat.delete()
