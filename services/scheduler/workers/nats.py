"""Workers over NATS: heartbeats from the bucket of each pool, and model lists on request."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from google.protobuf.message import DecodeError
from nats.aio.client import Client
from nats.errors import NoRespondersError

from proctor.v1 import work_messages_pb2
from proctor.values import messaging
from proctor.values.providers.worker import MAX_POOL_WORKERS
from proctor.wire.errors import UnknownNumber
from proctor.wire.subjects import HEARTBEATS, MODEL_LISTS
from proctor.wire.values import MODEL
from services.common.bounded_messages import read_message
from services.common.clock import Clock
from services.common.nats.bucket import Bucket
from services.common.nats.connection import TRANSIENT_NATS
from services.common.nats.streams import HEARTBEAT_BOUNDS, HEARTBEAT_TTL_SECONDS
from services.common.structured_logs import get_logger
from services.scheduler.workers.list_models import PoolListing
from services.scheduler.workers.proto import HEARTBEAT
from services.scheduler.workers.worker import Worker, WorkerTable

log = get_logger()

_REQUEST = work_messages_pb2.ListPoolModelsRequest().SerializeToString()


@dataclass(frozen=True, slots=True)
class _Heartbeat:
    heard_at: float
    size: int
    worker: Worker


class _PoolHeartbeats:
    """The last heartbeats of a pool by worker, the oldest first, within the bounds of their bucket.

    A bucket drops what is beyond its bounds without a word to its watchers.
    """

    def __init__(self) -> None:
        self._by_worker: dict[str, _Heartbeat] = {}
        self._bytes = 0

    def put(self, heartbeat: _Heartbeat) -> None:
        self._by_worker[heartbeat.worker.worker_id] = heartbeat
        self._bytes += heartbeat.size

    def pop(self, worker_id: str) -> _Heartbeat | None:
        known = self._by_worker.pop(worker_id, None)
        self._bytes -= known.size if known else 0
        return known

    def outdated(self, heard_before: float) -> str | None:
        """The first worker, if it was not heard since then or is beyond the bounds."""
        for worker_id, first in self._by_worker.items():
            is_within = (
                len(self._by_worker) <= MAX_POOL_WORKERS and self._bytes <= HEARTBEAT_BOUNDS.total_bytes
            )
            return None if is_within and first.heard_at >= heard_before else worker_id
        return None


class NatsWorkerRegistry:
    """Reads heartbeats as long as `listen` runs. `buckets` has the bucket of each pool."""

    def __init__(self, buckets: Mapping[str, Bucket], clock: Clock, changed: Callable[[], None]) -> None:
        self._buckets = buckets
        self._clock = clock
        self._changed = changed
        self._heartbeats = {pool: _PoolHeartbeats() for pool in buckets}
        self._table = WorkerTable()

    def workers(self) -> Sequence[Worker]:
        return self.table().workers()

    def table(self) -> WorkerTable:
        for pool in self._buckets:
            self._forget_outdated(pool)
        return self._table

    async def listen(self) -> NoReturn:
        async with asyncio.TaskGroup() as watches:
            for pool, bucket in self._buckets.items():
                watches.create_task(self._follow(pool, bucket), name=f"heartbeats of {pool}")
        raise RuntimeError("the watches of the heartbeats ended")

    async def _follow(self, pool: str, bucket: Bucket) -> None:
        async for entry in bucket.watch():
            self._on_heartbeat(pool, entry.key, entry.value)

    def _on_heartbeat(self, pool: str, worker_id: str, value: bytes | None) -> None:
        before = self._forget(pool, worker_id)
        worker = None if value is None else _read(pool, worker_id, value)
        if value is not None and worker is not None:
            self._heartbeats[pool].put(_Heartbeat(self._clock.monotonic(), len(value), worker))
            self._table.put(_table_key(pool, worker_id), worker)
            self._forget_outdated(pool)
        if _relevant_fields(before) != _relevant_fields(worker):
            self._changed()

    def _forget_outdated(self, pool: str) -> None:
        # A worker without a heartbeat for this long is gone; its key expires after the same time.
        heard_before = self._clock.monotonic() - HEARTBEAT_TTL_SECONDS
        while (worker_id := self._heartbeats[pool].outdated(heard_before)) is not None:
            self._forget(pool, worker_id)

    def _forget(self, pool: str, worker_id: str) -> Worker | None:
        known = self._heartbeats[pool].pop(worker_id)
        if known is None:
            return None
        self._table.drop(_table_key(pool, worker_id), pool)
        return known.worker


def _read(pool: str, worker_id: str, value: bytes) -> Worker | None:
    """None where it cannot be read, or is not what its key says."""
    try:
        worker = HEARTBEAT.from_proto(read_message(HEARTBEATS.kind, value, HEARTBEATS.max_bytes))
    except (DecodeError, UnknownNumber):
        log.warning("unreadable heartbeat", pool=pool, worker=worker_id)
        return None
    if (worker.pool, worker.worker_id) != (pool, worker_id):
        log.warning("heartbeat under another worker's key", pool=pool, worker=worker_id)
        return None
    return worker


def _table_key(pool: str, worker_id: str) -> str:
    return f"{pool} {worker_id}"


def _relevant_fields(worker: Worker | None) -> tuple[object, ...]:
    """The fields of a heartbeat that may change what the leader does."""
    if worker is None:
        return ()
    return (
        worker.state,
        worker.note,
        worker.loaded_model,
        worker.loading_model,
        worker.ready_models,
        worker.concurrency,
        worker.cannot_load,
        worker.refusals,
    )


class NatsModelListRequests:
    def __init__(self, connection: Client, clock: Clock, limit_seconds: float) -> None:
        self._connection = connection
        self._clock = clock
        self._limit_seconds = limit_seconds

    async def of_pool(self, pool: str) -> PoolListing:
        try:
            subject = messaging.model_list_subject(pool)
            reply = await self._connection.request(subject, _REQUEST, timeout=self._limit_seconds)
            response = read_message(MODEL_LISTS.kind, reply.data, MODEL_LISTS.max_bytes)
        except NoRespondersError:
            return PoolListing(problem="No worker of the pool is running; start one.")
        except DecodeError:
            return PoolListing(problem="A worker's answer cannot be read; update the workers of the pool.")
        except TRANSIENT_NATS:
            return PoolListing(problem=f"The workers did not answer within {self._limit_seconds:g} s.")
        models = tuple(MODEL.from_proto(model) for model in response.models)
        is_reported = bool(models) or not response.problem
        return PoolListing(
            models=models,
            problem=response.problem,
            listed_at=self._clock.now() if is_reported else None,
            has_key=response.has_key,
        )
