"""Live workers, from the heartbeats that they put into the bucket WORKERS."""

from collections.abc import Callable, Sequence
from datetime import UTC
from typing import NoReturn

from google.protobuf.message import DecodeError

from proctor.v1 import model_pb2, work_messages_pb2
from services.common.clock import Clock
from services.common.jetstream import Bucket
from services.common.structured_logs import get_logger
from services.scheduler.pools.pool import EngineLoad, Worker

log = get_logger()

# A worker that has not been heard for so long is gone; its key expires after the same time.
_SILENT_SECONDS = 15.0


class NatsCrew:
    """Hears heartbeats as long as `listen` runs."""

    def __init__(self, bucket: Bucket, clock: Clock, changed: Callable[[], None]) -> None:
        self._bucket = bucket
        self._clock = clock
        self._changed = changed
        self._heard: dict[str, tuple[float, Worker]] = {}

    def workers(self) -> Sequence[Worker]:
        oldest = self._clock.monotonic() - _SILENT_SECONDS
        self._heard = {key: heard for key, heard in self._heard.items() if heard[0] >= oldest}
        return [worker for _, (_, worker) in sorted(self._heard.items())]

    async def listen(self) -> NoReturn:
        async for entry in self._bucket.watch():
            self._hear(entry.key, entry.value)
        raise RuntimeError("the watch of the bucket WORKERS ended")

    def _hear(self, key: str, value: bytes | None) -> None:
        before = self._heard.pop(key, None)
        if value is not None:
            try:
                worker = _worker_from_proto(work_messages_pb2.WorkerStatus.FromString(value))
            except DecodeError:
                log.warning("unreadable heartbeat", worker=key)
                return
            self._heard[key] = (self._clock.monotonic(), worker)
        after = self._heard.get(key)
        if _word(before) != _word(after):
            self._changed()


def _word(heard: tuple[float, Worker] | None) -> tuple[object, ...]:
    """What of a heartbeat may change what the leader does."""
    if heard is None:
        return ()
    worker = heard[1]
    return (
        worker.condition,
        worker.loaded_model,
        worker.loading_model,
        worker.ready_models,
        worker.concurrency,
        worker.cannot_load,
        worker.refused_runs,
    )


def _worker_from_proto(status: work_messages_pb2.WorkerStatus) -> Worker:
    return Worker(
        worker_id=status.worker_id,
        pool=status.pool,
        engine=status.engine,
        provider=status.provider,
        models=tuple(status.models),
        loaded_model=status.loaded_model,
        in_flight=status.in_flight,
        concurrency=status.concurrency,
        condition=status.condition,
        sent_at=status.sent_at.ToDatetime(tzinfo=UTC),
        cannot_load=dict(status.cannot_load),
        refused_runs=dict(status.refused_runs),
        loading_model=status.loading_model,
        ready_models=tuple(status.ready_models),
        load=_load_from_proto(status.load) if status.HasField("load") else None,
        environment=dict(status.environment),
        throttled_servers={
            server: until.ToDatetime(tzinfo=UTC) for server, until in status.throttled_servers.items()
        },
    )


def _load_from_proto(load: model_pb2.EngineLoad) -> EngineLoad:
    return EngineLoad(
        running_requests=load.running_requests,
        waiting_requests=load.waiting_requests,
        kv_cache_usage=load.kv_cache_usage,
        prefix_cache_queries=load.prefix_cache_queries,
        prefix_cache_hits=load.prefix_cache_hits,
        generated_tokens=load.generated_tokens,
    )
