"""Joins the parts of a worker that pull, execute and answer for shards, and starts their loops."""

import asyncio
import os
import uuid
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial

from nats.aio.client import Client

from proctor.values.providers.models import EngineLoad
from proctor.values.providers.pool import Pool
from services.common.clock import Clock, ServerClock
from services.common.lifecycle import BackgroundLoops, every
from services.common.nats import streams
from services.common.nats.bucket import Bucket
from services.common.nats.jetstream import JetStream
from services.worker import metrics
from services.worker.consumer.consume_shards import ConsumeShards
from services.worker.consumer.execute_shard import ConcurrencyLimit, ExecuteShard
from services.worker.consumer.gpu_time import GpuTime
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
from services.worker.engines.engine_cache import EngineCache
from services.worker.engines.ports import Engine
from services.worker.engines.wiring import engines_by_url
from services.worker.execution.execute_sample import ExecuteSample, RetryPolicy
from services.worker.execution.nats import NatsOutcomePublisher, ServerTime, follow_run_states
from services.worker.execution.outcome_batcher import OutcomeBatcher
from services.worker.execution.run_states import RefusedRuns, RunStates
from services.worker.models.model_loader import ModelLoader
from services.worker.models.nats import ListEngineModels, NatsModelListAnswers
from services.worker.rate_limits.limiter import RateLimiters
from services.worker.rate_limits.nats import CHECK_SECONDS, NatsRateLimits
from services.worker.rate_limits.waits import Backoff
from services.worker.rollouts.process_rollout import ProcessRollout
from services.worker.rollouts.wiring import RolloutResources, make_process_rollout, rollout_slots
from services.worker.sandboxes.ports import SandboxEngine
from services.worker.settings import WorkerSettings
from services.worker.verification.check_code import CheckCode

# How soon a changed state goes out; an unchanged one goes out every `heartbeat_seconds`.
_HEARTBEAT_CHECK_SECONDS = 0.25
# How often a bucket that may have been wiped is looked for: once for many puts, not before each.
_BUCKET_CHECK_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerResources:
    """The settings and connections of a worker process; `clock` shows the time of NATS."""

    settings: WorkerSettings
    identity: WorkerIdentity
    connection: Client
    clock: ServerClock
    sandboxes: SandboxEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerParts:
    """The connected parts of a worker."""

    context: WorkerContext
    consumer: ConsumeShards
    batcher: OutcomeBatcher
    engines: EngineCache
    heartbeat: NatsHeartbeat


def connect_parts(resources: WorkerResources, engine: Engine, limiters: RateLimiters) -> WorkerParts:
    settings, identity, clock = resources.settings, resources.identity, resources.clock
    pool = identity.pool
    jetstream = JetStream(connection=resources.connection, bucket_check_seconds=_BUCKET_CHECK_SECONDS)
    loader = ModelLoader(
        engine=engine, groups=pool.groups, clock=clock, retry_seconds=settings.retry_load_seconds
    )
    batcher = _make_batcher(jetstream, identity, loader)
    context = _make_context(pool, clock, rollout_slots(settings))
    engines = EngineCache(own=engine, make_other=engines_by_url(pool, settings, limiters))
    execute_sample = _make_execute_sample(resources, context, engines, limiters)
    executor = ExecuteShard(
        execute_sample=execute_sample,
        process_rollout=_make_process_rollout(resources, execute_sample),
        batcher=batcher,
        concurrency=ConcurrencyLimit(
            limit=pool.concurrency, gpu_time=GpuTime(clock=clock, gpus=lambda: loader.engine_gpus)
        ),
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
    registry = NatsWorkerRegistry(jetstream=jetstream, identity=identity, heartbeat=heartbeat)
    consumer = ConsumeShards(
        source=source,
        loader=loader,
        processor=ProcessShard(executor=executor, batcher=batcher, context=context, clock=clock),
        context=context,
        selector=_make_selector(resources, registry, source, loader),
    )
    _watch(executor.concurrency, loader, limiters)
    return WorkerParts(
        context=context, consumer=consumer, batcher=batcher, engines=engines, heartbeat=heartbeat
    )


def _make_batcher(jetstream: JetStream, identity: WorkerIdentity, loader: ModelLoader) -> OutcomeBatcher:
    publisher = NatsOutcomePublisher(
        jetstream=jetstream, worker_id=identity.worker_id, environment=lambda: loader.environment
    )
    return OutcomeBatcher(publisher=publisher, new_id=lambda: uuid.uuid4().hex)


def _make_context(pool: Pool, clock: Clock, rollouts: int) -> WorkerContext:
    return WorkerContext(
        in_flight=InFlightShards(),
        prefetch=Prefetch(limits=PrefetchLimits.for_concurrency(pool.concurrency, rollouts), clock=clock),
        run_states=RunStates(),
        refused_runs=RefusedRuns(clock=clock),
    )


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
    resources: WorkerResources, context: WorkerContext, engines: EngineCache, limiters: RateLimiters
) -> ExecuteSample:
    slots = resources.settings.sandbox_slots or os.cpu_count() or 1
    check_code = CheckCode(
        engine=resources.sandboxes, slots=asyncio.Semaphore(slots), new_word=lambda: uuid.uuid4().hex
    )
    return ExecuteSample(
        check_code=check_code,
        engines=engines,
        clock=resources.clock,
        retry_policy=RetryPolicy(backoff=Backoff(), max_tries=resources.settings.max_tries),
        rate_limiters=limiters,
        run_states=context.run_states,
        refused_runs=context.refused_runs,
    )


def _make_process_rollout(resources: WorkerResources, execute_sample: ExecuteSample) -> ProcessRollout:
    of_rollouts = RolloutResources(
        settings=resources.settings,
        connection=resources.connection,
        pool=resources.identity.pool.name,
        sandboxes=resources.sandboxes,
        clock=resources.clock,
    )
    return make_process_rollout(of_rollouts, execute_sample)


def _make_selector(
    resources: WorkerResources, registry: NatsWorkerRegistry, source: NatsShardSource, loader: ModelLoader
) -> SelectModel:
    settings = resources.settings
    policy = SwitchPolicy(
        idle_seconds=settings.switch_when_idle_seconds,
        min_residency_seconds=settings.min_model_residency_seconds,
    )
    return SelectModel(source=source, registry=registry, loader=loader, clock=resources.clock, policy=policy)


def start_loops(resources: WorkerResources, parts: WorkerParts, limiters: RateLimiters) -> BackgroundLoops:
    settings, identity, connection = resources.settings, resources.identity, resources.connection
    jetstream = JetStream(connection=connection, bucket_check_seconds=_BUCKET_CHECK_SECONDS)
    consumer, context = parts.consumer, parts.context
    beat = partial(parts.heartbeat.send_if_due, settings.heartbeat_seconds)
    lister = ListEngineModels(engine=parts.engines.own, limit_seconds=settings.list_seconds)
    lists = NatsModelListAnswers(connection=connection, pool=identity.pool.name, lister=lister)
    time = ServerTime(jetstream=jetstream, clock=resources.clock)
    loops: dict[str, Coroutine[None, None, None]] = {
        "consume shards": consumer.run(),
        "publish outcomes": parts.batcher.run(),
        "extend ack deadlines": every(
            settings.ack_wait_seconds / 3, context.in_flight.extend_ack_deadlines, name="extend ack deadlines"
        ),
        "follow run states": follow_run_states(jetstream, context.run_states, consumer.abandon_ended),
        "heartbeat": every(_HEARTBEAT_CHECK_SECONDS, beat, name="heartbeat"),
        "list models": lists.answer(),
        "learn the time": every(1.0, time.learn_if_due, name="learn the time"),
    }
    if limiters.own.key:  # an engine in the worker has no rate limit
        rates = NatsRateLimits(
            connection=connection,
            bucket=Bucket(jetstream=jetstream, spec=streams.QUOTAS_BUCKET),
            worker_id=identity.worker_id,
            limiters=limiters,
            clock=resources.clock,
        )
        loops["report rates"] = every(CHECK_SECONDS, rates.report_due, name="report rates")
        loops["follow quotas"] = rates.follow_quotas()
    return BackgroundLoops(loops=loops)
