"""The only module that knows all concrete parts of a worker: makes them, joins them, closes them."""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

from nats.aio.client import Client

from services.common import subjects
from services.common.clock import SystemClock
from services.common.grpc_server import GrpcServer, serve_grpc
from services.common.jetstream import TRANSIENT_NATS, JetStream, connect_nats
from services.common.lifecycle import every
from services.common.structured_logs import get_logger
from services.worker.consumer.consume_shards import ShardServer
from services.worker.consumer.execute_shard import ShardExecutor, Slots
from services.worker.consumer.in_flight import HeldMessages
from services.worker.consumer.nats import NatsShardSource
from services.worker.consumer.nats_registry import Identity, NatsCrew, NatsHeartbeat, ToldParts
from services.worker.consumer.prefetch import Intake, IntakeLimits
from services.worker.consumer.process_shard import Desk, ShardWork
from services.worker.consumer.select_model import ModelChooser, Stay
from services.worker.engines.anthropic.api import AnthropicApi
from services.worker.engines.engine import Engine
from services.worker.engines.engine_cache import Engines
from services.worker.engines.gemini.api import GeminiApi
from services.worker.engines.http.client import Endpoint
from services.worker.engines.http.provider_engine import HttpEngine
from services.worker.engines.ollama.api import OllamaApi
from services.worker.engines.openai.engine import OpenAIEngine, OpenAISettings, server_at
from services.worker.execution.batch_outcomes import OutcomeBatcher
from services.worker.execution.execute_sample import AskingRules, SampleAsker
from services.worker.execution.nats import NatsOutcomePublisher, follow_run_states
from services.worker.execution.retry_policy import RetryPolicy
from services.worker.execution.run_states import RefusedRuns, RunStates
from services.worker.models.list_models import ModelLister
from services.worker.models.load_models import ModelLoader
from services.worker.models.nats import NatsModelLists
from services.worker.pools.api_keys import read_key
from services.worker.pools.pool import Pool, Provider
from services.worker.pools.yaml_pools import read_pool
from services.worker.rate_limits.backoff import Backoff
from services.worker.rate_limits.limiter import Paces
from services.worker.rate_limits.nats import LOOK_SECONDS, NatsPaces
from services.worker.settings import WorkerSettings

_PUBLISH_SECONDS = 5.0
_LOOK_SECONDS = 0.25
_CANCEL_AGAIN_SECONDS = 0.2
# Models are listed also while every slot waits for an answer.
_LIST_CONNECTIONS = 4

log = get_logger()


@dataclass(frozen=True, slots=True)
class Parts:
    """What a worker consists of, joined."""

    loader: ModelLoader
    slots: Slots
    desk: Desk
    batcher: OutcomeBatcher
    server: ShardServer
    engines: Engines


class RunningWorker:
    """SERVING while it wants work; the model may still be loading."""

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
        self._parts.server.stop()

    async def drain(self) -> None:
        """What is not published in time is delivered again, since it was not acknowledged either."""
        try:
            async with asyncio.timeout(self._drain_seconds + _PUBLISH_SECONDS):
                await self._parts.server.drain(self._drain_seconds)
                await self._parts.batcher.drain()
        except TimeoutError:
            log.warning("drained in part; the rest will be delivered again")


@asynccontextmanager
async def running_worker(settings: WorkerSettings) -> AsyncIterator[RunningWorker]:
    pool = read_pool(settings.pools_file, settings.worker_pool)
    identity = Identity(f"{pool.name}-{socket.gethostname()}-{uuid.uuid4().hex[:8]}", pool)
    async with AsyncExitStack() as opened:
        health = await serve_grpc(settings.worker_health_address, (), ())
        opened.push_async_callback(health.stop, 0)
        connection = await connect_nats(settings.nats_url, identity.worker_id)
        opened.push_async_callback(connection.close)
        paces = make_paces(pool)
        engine = make_engine(pool, settings, paces)
        opened.push_async_callback(engine.close)
        jetstream = JetStream(connection)
        parts = join_parts(settings, identity, jetstream, engine, paces)
        opened.push_async_callback(parts.engines.close)
        heartbeat = NatsHeartbeat(
            jetstream, identity, ToldParts(parts.server, parts.loader, parts.slots, paces)
        )
        opened.push_async_callback(leave_quietly, heartbeat)
        tasks = start_loops(settings, jetstream, parts, heartbeat)
        lists = NatsModelLists(connection, pool.name, ModelLister(engine, settings.worker_list_seconds))
        tasks.append(asyncio.create_task(lists.answer(), name="list models"))
        tasks += start_pacing(connection, identity, paces)
        opened.push_async_callback(end_loops, parts, tasks)
        yield RunningWorker(parts, tasks, health, settings.worker_drain_seconds)


def make_paces(pool: Pool) -> Paces:
    clock, backoff, provider = SystemClock(), Backoff(), pool.provider
    if provider is None:
        return Paces(clock, backoff)
    return Paces(clock, backoff, provider.name, provider.base_url, _provider_key(provider))


def make_engine(pool: Pool, settings: WorkerSettings, paces: Paces) -> Engine:
    """vLLM lives in an environment of its own, so it is imported only where it is the pool's engine."""
    if pool.provider is None:
        return _make_vllm(pool)
    endpoint = _endpoint(pool.provider, pool.concurrency, settings.worker_request_timeout_seconds)
    endpoint = replace(endpoint, hear=paces.hear)
    return _make_remote(pool.engine, pool.provider, endpoint)


def _other_servers(pool: Pool, settings: WorkerSettings, paces: Paces) -> Callable[[str], Engine] | None:
    """The pool's key goes to its own server and to no other."""
    provider = pool.provider
    if provider is None or pool.engine != "openai":
        return None

    def make(base_url: str) -> Engine:
        keyless = replace(provider, base_url=base_url, api_key_env="")
        endpoint = _endpoint(keyless, pool.concurrency, settings.worker_request_timeout_seconds)
        return _make_remote(pool.engine, keyless, replace(endpoint, hear=paces.hear))

    return make


def _make_vllm(pool: Pool) -> Engine:
    from services.worker.engines.vllm.engine import VllmEngine  # noqa: PLC0415
    from services.worker.engines.vllm.model_files import VllmModel, VllmSettings  # noqa: PLC0415

    models = tuple(
        VllmModel(model.name, model.path, model.engine_args, model.lora, model.engine_key)
        for model in pool.models
    )
    return VllmEngine(VllmSettings(models))


def _provider_key(provider: Provider) -> str | None:
    return read_key(provider.api_key_env, os.environ)


def _endpoint(provider: Provider, concurrency: int, timeout_seconds: float) -> Endpoint:
    return Endpoint(
        base_url=provider.base_url,
        provider=provider.name,
        api_key=_provider_key(provider),
        api_key_variable=provider.api_key_env,
        timeout_seconds=timeout_seconds,
        connections=concurrency + _LIST_CONNECTIONS,
    )


def _make_remote(engine: str, provider: Provider, endpoint: Endpoint) -> Engine:
    match engine:
        case "ollama":
            return HttpEngine(OllamaApi(endpoint))
        case "gemini":
            return HttpEngine(GeminiApi(endpoint))
        case "anthropic":
            return HttpEngine(AnthropicApi(endpoint))
        case _:
            return OpenAIEngine(
                OpenAISettings(
                    endpoint,
                    has_loglikelihood=provider.has_loglikelihood,
                    constrained_field=provider.constrained_field,
                    server=server_at(endpoint.base_url),
                )
            )


def join_parts(
    settings: WorkerSettings, identity: Identity, jetstream: JetStream, engine: Engine, paces: Paces
) -> Parts:
    pool, clock = identity.pool, SystemClock()
    loader = ModelLoader(engine, pool.groups, clock, settings.worker_retry_load_seconds)
    publisher = NatsOutcomePublisher(jetstream, identity.worker_id, lambda: loader.environment)
    batcher = OutcomeBatcher(publisher, lambda: uuid.uuid4().hex)
    source = NatsShardSource(jetstream, pool, settings.work_ack_wait_seconds)
    slots = Slots(pool.concurrency)
    intake = Intake(IntakeLimits.for_concurrency(pool.concurrency), len(source.priorities), clock)
    desk = Desk(HeldMessages(), intake, RunStates(), RefusedRuns(clock))
    policy = RetryPolicy(Backoff(), settings.worker_max_tries)
    engines = Engines(engine, _other_servers(pool, settings, paces))
    asker = SampleAsker(engines, clock, AskingRules(policy, paces, desk.states, desk.refused))
    executor = ShardExecutor(asker, batcher, slots, intake)
    work = ShardWork(executor, batcher, desk, clock)
    stay = Stay(settings.worker_swap_after_seconds, settings.worker_min_stay_seconds)
    chooser = ModelChooser(source, NatsCrew(jetstream, identity), loader, clock, stay)
    server = ShardServer(source, loader, work, desk, chooser)
    return Parts(loader, slots, desk, batcher, server, engines)


def start_loops(
    settings: WorkerSettings, jetstream: JetStream, parts: Parts, heartbeat: NatsHeartbeat
) -> list[asyncio.Task[None]]:
    """Every one of them is vital; they end when they are cancelled."""
    keep_seconds = settings.work_ack_wait_seconds / 3
    beat = partial(heartbeat.beat_if_due, settings.worker_heartbeat_seconds)
    loops: dict[str, Coroutine[None, None, None]] = {
        "serve shards": parts.server.run(),
        "publish outcomes": parts.batcher.run(),
        "keep messages": every(keep_seconds, parts.desk.held.keep_all, name="keep messages"),
        "follow run states": follow_run_states(jetstream, parts.desk.states, parts.server.abandon_ended),
        "heartbeat": every(_LOOK_SECONDS, beat, name="heartbeat"),
    }
    return [asyncio.create_task(loop, name=name) for name, loop in loops.items()]


def start_pacing(connection: Client, identity: Identity, paces: Paces) -> list[asyncio.Task[None]]:
    """An engine in the worker is asked as fast as it can."""
    if not paces.own.name:
        return []
    bucket = JetStream(connection).bucket(subjects.QUOTAS_BUCKET)
    wire = NatsPaces(connection, bucket, identity.worker_id, paces, SystemClock())
    return [
        asyncio.create_task(every(LOOK_SECONDS, wire.report_due, name="report paces"), name="report paces"),
        asyncio.create_task(wire.follow_grants(), name="follow grants"),
    ]


async def end_loops(parts: Parts, tasks: Sequence[asyncio.Task[None]]) -> None:
    """The pulls end by themselves once nothing more is let in; the rest is cancelled."""
    parts.server.stop()
    await cancel_all(tasks)


async def cancel_all(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Until they have ended: nats-py waits by Python 3.11's `wait_for`, which may swallow a cancellation."""
    running = set(tasks)
    while running:
        for task in running:
            task.cancel()
        _, running = await asyncio.wait(running, timeout=_CANCEL_AGAIN_SECONDS)


async def leave_quietly(heartbeat: NatsHeartbeat) -> None:
    """NATS may be away: then the last beat expires by itself."""
    with suppress(*TRANSIENT_NATS):
        await heartbeat.leave()
