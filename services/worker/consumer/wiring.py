"""Joins the parts of a worker that pull shards, execute them, and answer for them."""

import asyncio
import os
import uuid
from dataclasses import dataclass

from proctor.values.providers.pool import Pool
from services.common.clock import Clock, ServerClock
from services.common.nats.jetstream import JetStream
from services.common.sandboxes.ports import SandboxEngine
from services.worker.consumer.concurrency_limit import ConcurrencyLimit
from services.worker.consumer.consume_shards import ConsumeShards
from services.worker.consumer.execute_shard import ExecuteShard
from services.worker.consumer.gpu_time import GpuTime
from services.worker.consumer.in_flight import InFlightShards
from services.worker.consumer.nats import NatsShardSource
from services.worker.consumer.nats_quarantine import NatsQuarantine
from services.worker.consumer.nats_registry import (
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
from services.worker.execution.execute_sample import ExecuteSample, RequestRetryPolicy
from services.worker.execution.nats import NatsOutcomePublisher
from services.worker.execution.outcome_batcher import OutcomeBatcher
from services.worker.execution.run_states import RefusedRuns, RunStates
from services.worker.models.model_loader import ModelLoader
from services.worker.rate_limits.limiter import RateLimiters
from services.worker.rate_limits.waits import Backoff
from services.worker.rollouts.process_rollout import ProcessRollout
from services.worker.rollouts.wiring import make_process_rollout, rollout_slots
from services.worker.settings import WorkerSettings
from services.worker.verification.check_code import CheckCode

# How often a bucket that may have been wiped is looked for: once for many puts, not before each.
BUCKET_CHECK_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerResources:
    """The settings and connections of a worker process; `clock` shows the time of NATS."""

    settings: WorkerSettings
    identity: WorkerIdentity
    jetstream: JetStream
    clock: ServerClock
    sandboxes: SandboxEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerParts:
    context: WorkerContext
    source: NatsShardSource
    consumer: ConsumeShards
    batcher: OutcomeBatcher
    loader: ModelLoader
    engines: EngineCache
    heartbeat: NatsHeartbeat
    concurrency: ConcurrencyLimit


def make_consumer(resources: WorkerResources, engine: Engine, limiters: RateLimiters) -> ConsumerParts:
    settings, identity, clock = resources.settings, resources.identity, resources.clock
    pool, jetstream = identity.pool, resources.jetstream
    loader = ModelLoader(
        engine=engine, groups=pool.groups, clock=clock, retry_seconds=settings.retry_load_seconds
    )
    batcher = _make_batcher(jetstream, identity, loader)
    slots = rollout_slots(settings, pool.concurrency)
    context = _make_context(pool, clock, slots)
    engines = EngineCache(own=engine, make_other=engines_by_url(pool, settings, limiters))
    execute_sample = _make_execute_sample(resources, context, engines, limiters)
    # The GPUs of a provider's server are not counted.
    gpu_time = None if pool.provider else GpuTime(clock=clock, gpus=lambda: loader.engine_gpus)
    executor = ExecuteShard(
        execute_sample=execute_sample,
        process_rollout=_make_process_rollout(resources, slots, execute_sample),
        batcher=batcher,
        concurrency=ConcurrencyLimit(limit=pool.concurrency, gpu_time=gpu_time),
        prefetch=context.prefetch,
        quarantine=NatsQuarantine(jetstream=jetstream, pool=pool.name),
    )
    source = _make_source(resources, jetstream, context)
    heartbeat = NatsHeartbeat(
        jetstream=jetstream,
        identity=identity,
        context=context,
        loader=loader,
        concurrency=executor.concurrency,
        rollout_slots=slots,
        rate_limiters=limiters,
        clock=clock,
    )
    registry = NatsWorkerRegistry(jetstream=jetstream, identity=identity, heartbeat=heartbeat)
    consumer = ConsumeShards(
        source=source,
        loader=loader,
        processor=ProcessShard(executor=executor, context=context, clock=clock),
        context=context,
        selector=_make_selector(resources, registry, source, loader),
    )
    return ConsumerParts(
        context=context,
        source=source,
        consumer=consumer,
        batcher=batcher,
        loader=loader,
        engines=engines,
        heartbeat=heartbeat,
        concurrency=executor.concurrency,
    )


def _make_source(resources: WorkerResources, jetstream: JetStream, context: WorkerContext) -> NatsShardSource:
    return NatsShardSource(
        jetstream=jetstream,
        pool=resources.identity.pool,
        clock=resources.clock,
        ack_wait_seconds=resources.settings.ack_wait_seconds,
        may_start=context.run_states.may_start,
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


def _make_execute_sample(
    resources: WorkerResources, context: WorkerContext, engines: EngineCache, limiters: RateLimiters
) -> ExecuteSample:
    slots = resources.settings.sandbox_slots or os.cpu_count() or 1
    check_code = CheckCode(
        engine=resources.sandboxes, slots=asyncio.Semaphore(slots), new_nonce=lambda: uuid.uuid4().hex
    )
    return ExecuteSample(
        check_code=check_code,
        engines=engines,
        clock=resources.clock,
        request_retry_policy=RequestRetryPolicy(backoff=Backoff(), max_tries=resources.settings.max_tries),
        rate_limiters=limiters,
        run_states=context.run_states,
        refused_runs=context.refused_runs,
    )


def _make_process_rollout(
    resources: WorkerResources, slots: int, execute_sample: ExecuteSample
) -> ProcessRollout:
    return make_process_rollout(
        resources.settings,
        connection=resources.jetstream.connection,
        pool=resources.identity.pool.name,
        slots=slots,
        sandboxes=resources.sandboxes,
        clock=resources.clock,
        execute_sample=execute_sample,
    )


def _make_selector(
    resources: WorkerResources, registry: NatsWorkerRegistry, source: NatsShardSource, loader: ModelLoader
) -> SelectModel:
    settings = resources.settings
    policy = SwitchPolicy(
        idle_seconds=settings.switch_when_idle_seconds,
        min_residency_seconds=settings.min_model_residency_seconds,
    )
    return SelectModel(source=source, registry=registry, loader=loader, clock=resources.clock, policy=policy)
