"""Connects the topics of a worker, and gathers the loops that each one runs."""

import os
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from functools import partial

from proctor.values.providers.worker import EngineLoad
from services.common.lifecycle import every
from services.common.nats import streams
from services.common.nats.bucket import Bucket
from services.worker import metrics
from services.worker.consumer.concurrency_limit import ConcurrencyLimit
from services.worker.consumer.wiring import (
    ConsumerParts,
    WorkerResources,
    make_consumer,
)
from services.worker.engines.ports import Engine
from services.worker.engines.yaml_pools import read_key
from services.worker.execution.nats import ServerTime, follow_run_states
from services.worker.models.list_engine_models import ListEngineModels
from services.worker.models.model_loader import ModelLoader
from services.worker.models.nats import NatsModelListAnswers
from services.worker.rate_limits.limiter import RateLimiters
from services.worker.rate_limits.nats import POLL_SECONDS, NatsRateLimits

# How soon a changed state goes out; an unchanged one goes out every `heartbeat_seconds`.
HEARTBEAT_POLL_SECONDS = 0.25
TIME_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    resources: WorkerResources
    consuming: ConsumerParts
    model_lists: NatsModelListAnswers
    time: ServerTime
    # None: an engine in the worker has no rate limit.
    rates: NatsRateLimits | None

    def loops(self) -> Mapping[str, Coroutine[None, None, None]]:
        settings, parts = self.resources.settings, self.consuming
        extend = parts.context.in_flight.extend_ack_deadlines
        pause = parts.source.extension_seconds
        send_heartbeat = partial(parts.heartbeat.send_if_due, settings.heartbeat_seconds)
        states, abandon = parts.context.run_states, parts.consumer.abandon_finished
        loops: dict[str, Coroutine[None, None, None]] = {
            "consume shards": parts.consumer.run(),
            "publish outcomes": parts.batcher.run(),
            "extend ack deadlines": every(pause, extend, name="extend ack deadlines"),
            "follow run states": follow_run_states(self.resources.jetstream, states, abandon),
            "heartbeat": every(HEARTBEAT_POLL_SECONDS, send_heartbeat, name="heartbeat"),
            "list models": self.model_lists.answer(),
            "learn the time": every(TIME_POLL_SECONDS, self.time.learn_if_due, name="learn the time"),
        }
        if self.rates:
            loops["report rates"] = every(POLL_SECONDS, self.rates.report_due, name="report rates")
            loops["follow quotas"] = self.rates.follow_quotas()
        return loops


def make_topics(resources: WorkerResources, *, engine: Engine, limiters: RateLimiters) -> Topics:
    jetstream, identity, clock = resources.jetstream, resources.identity, resources.clock
    consuming = make_consumer(resources, engine, limiters)
    _watch(consuming.concurrency, consuming.loader, limiters)
    provider = identity.pool.provider
    has_key = provider is not None and read_key(provider.api_key_env, os.environ) is not None
    lister = ListEngineModels(
        engine=engine, limit_seconds=resources.settings.list_models_timeout_seconds, has_key=has_key
    )
    rates = NatsRateLimits(
        connection=jetstream.connection,
        bucket=Bucket(jetstream=jetstream, spec=streams.QUOTAS_BUCKET),
        pool=identity.pool.name,
        worker_id=identity.worker_id,
        limiters=limiters,
        clock=clock,
    )
    return Topics(
        resources=resources,
        consuming=consuming,
        model_lists=NatsModelListAnswers(
            connection=jetstream.connection, pool=identity.pool.name, lister=lister
        ),
        time=ServerTime(jetstream=jetstream, clock=clock),
        rates=rates if limiters.own.key else None,
    )


def _watch(concurrency: ConcurrencyLimit, loader: ModelLoader, limiters: RateLimiters) -> None:
    """These are read with the metrics."""
    metrics.SAMPLES_IN_FLIGHT.set_function(lambda: concurrency.in_use)
    metrics.CONCURRENCY.set(concurrency.limit)
    metrics.QUOTA_WAITS.set_function(lambda: sum(limiter.requests_waiting_for_quota for limiter in limiters))
    if not loader.serves_any:
        load = partial(_engine_load, loader)
        metrics.KV_CACHE.set_function(lambda: load().kv_cache_usage)
        metrics.ENGINE_REQUESTS.labels("running").set_function(lambda: load().running_requests)
        metrics.ENGINE_REQUESTS.labels("waiting").set_function(lambda: load().waiting_requests)


def _engine_load(loader: ModelLoader) -> EngineLoad:
    """Nothing while no model is loaded."""
    return loader.engine_load or EngineLoad()
