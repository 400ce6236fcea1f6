"""The worker registry in the bucket WORKERS: this worker's heartbeat, and its peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.v1 import model_pb2, work_messages_pb2
from services.common import subjects
from services.common.clock import SystemClock
from services.common.jetstream import TRANSIENT_NATS, JetStream
from services.common.structured_logs import get_logger
from services.worker.consumer.consume_shards import ShardServer
from services.worker.consumer.execute_shard import Slots
from services.worker.consumer.ports import Colleague
from services.worker.engines.engine import EngineLoad
from services.worker.execution.choice_prompt import INSTRUCTION_VERSION
from services.worker.models.load_models import ModelLoader
from services.worker.pools.pool import Pool
from services.worker.rate_limits.limiter import Paces


@dataclass(frozen=True, slots=True)
class Identity:
    worker_id: str
    pool: Pool


@dataclass(frozen=True, slots=True)
class ToldParts:
    """What a heartbeat tells of."""

    server: ShardServer
    loader: ModelLoader
    slots: Slots
    paces: Paces


class NatsHeartbeat:
    def __init__(self, jetstream: JetStream, identity: Identity, parts: ToldParts) -> None:
        self._bucket = jetstream.bucket(subjects.WORKERS_BUCKET)
        self._identity = identity
        self._server = parts.server
        self._loader = parts.loader
        self._slots = parts.slots
        self._paces = parts.paces
        self._clock = SystemClock()
        self._told: tuple[object, ...] = ()
        self._beat_at = float("-inf")

    async def beat_if_due(self, every_seconds: float) -> None:
        """Beats when the time has come, or at once when there is something new to tell."""
        news = (
            self.condition,
            self._loader.loaded_model,
            self._loader.cannot_load,
            self._loader.turning_to,
            self._loader.ready_models,
            self._server.refused_runs,
            self._paces.throttled_servers(),
        )
        if news == self._told and self._clock.monotonic() < self._beat_at + every_seconds:
            return
        await self._bucket.put(self._identity.worker_id, self._status().SerializeToString())
        self._told, self._beat_at = news, self._clock.monotonic()

    async def leave(self) -> None:
        """The worker is gone; nobody need wait for its last beat to expire."""
        await self._bucket.delete(self._identity.worker_id)

    @property
    def condition(self) -> str:
        if self._server.is_stopping:
            return "draining"
        if self._loader.is_loading:
            return "loading"
        if self._loader.serves_any or self._loader.loaded_model:
            return "ready"
        return "; ".join(self._loader.cannot_load.values()) or "no model loaded"

    def _status(self) -> work_messages_pb2.WorkerStatus:
        pool = self._identity.pool
        status = work_messages_pb2.WorkerStatus(
            worker_id=self._identity.worker_id,
            pool=pool.name,
            engine=pool.engine,
            provider=pool.provider_name,
            models=self._loader.models,
            loaded_model=self._loader.loaded_model or "",
            in_flight=self._slots.in_use,
            concurrency=self._slots.count,
            condition=self.condition,
            cannot_load=self._loader.cannot_load,
            loading_model=self._loader.turning_to or "",
            ready_models=self._loader.ready_models,
            environment=self._facts(),
            refused_runs={f"{run}/{epoch}": why for (run, epoch), why in self._server.refused_runs.items()},
        )
        if load := self._loader.engine_load:
            status.load.CopyFrom(load_to_proto(load))
        for server, until in self._paces.throttled_servers().items():
            status.throttled_servers[server].FromDatetime(until)
        status.sent_at.FromDatetime(self._clock.now())
        return status

    def _facts(self) -> Mapping[str, str]:
        """What any outcome from here may say of the engine and of how it is asked."""
        known = self._loader.environment
        return {**known, "choice_instruction": INSTRUCTION_VERSION} if known else {}


def load_to_proto(load: EngineLoad) -> model_pb2.EngineLoad:
    return model_pb2.EngineLoad(
        running_requests=load.running_requests,
        waiting_requests=load.waiting_requests,
        kv_cache_usage=load.kv_cache_usage,
        prefix_cache_queries=load.prefix_cache_queries,
        prefix_cache_hits=load.prefix_cache_hits,
        generated_tokens=load.generated_tokens,
    )


log = get_logger()


class NatsCrew:
    def __init__(self, jetstream: JetStream, identity: Identity) -> None:
        self._bucket = jetstream.bucket(subjects.WORKERS_BUCKET)
        self._identity = identity

    async def others(self) -> Sequence[Colleague]:
        """Reads the whole bucket: asked only when there is a model to turn to."""
        try:
            beats = await self._bucket.entries()
        except TRANSIENT_NATS as error:
            log.info("cannot tell who else serves", error=repr(error))
            return ()
        beats.pop(self._identity.worker_id, None)
        statuses = map(work_messages_pb2.WorkerStatus.FromString, beats.values())
        return [
            Colleague(
                tuple(status.ready_models),
                status.loading_model,
                comes_first=status.worker_id < self._identity.worker_id,
            )
            for status in statuses
            if status.pool == self._identity.pool.name and status.condition != "draining"
        ]
