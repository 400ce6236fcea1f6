"""Workers over NATS: heartbeats from the bucket WORKERS, and model lists on request."""

from collections.abc import Callable, Sequence
from typing import NoReturn

from google.protobuf.message import DecodeError
from nats.aio.client import Client
from nats.errors import NoRespondersError

from proctor.v1 import work_messages_pb2
from proctor.values import messaging
from proctor.wire.errors import UnknownNumber
from proctor.wire.values import MODEL
from services.common.bounded_messages import read_message
from services.common.clock import Clock
from services.common.nats.bucket import Bucket
from services.common.nats.connection import TRANSIENT_NATS
from services.common.nats.streams import HEARTBEAT_TTL_SECONDS
from services.common.structured_logs import get_logger
from services.scheduler.workers.list_models import PoolListing
from services.scheduler.workers.proto import HEARTBEAT
from services.scheduler.workers.worker import Worker, WorkerTable

log = get_logger()

_REQUEST = work_messages_pb2.ListPoolModelsRequest().SerializeToString()


class NatsWorkerRegistry:
    """Reads heartbeats as long as `listen` runs."""

    def __init__(self, bucket: Bucket, clock: Clock, changed: Callable[[], None]) -> None:
        self._bucket = bucket
        self._clock = clock
        self._changed = changed
        # The worker with the oldest heartbeat comes first.
        self._heartbeats: dict[str, tuple[float, Worker]] = {}
        self._table = WorkerTable()

    def workers(self) -> Sequence[Worker]:
        return self.table().workers()

    def table(self) -> WorkerTable:
        # A worker without a heartbeat for this long is gone; its key expires after the same time.
        oldest = self._clock.monotonic() - HEARTBEAT_TTL_SECONDS
        while self._heartbeats and (first := next(iter(self._heartbeats.items())))[1][0] < oldest:
            self._forget(first[0])
        return self._table

    async def listen(self) -> NoReturn:
        async for entry in self._bucket.watch():
            self._on_heartbeat(entry.key, entry.value)
        raise RuntimeError("the watch of the bucket WORKERS ended")

    def _on_heartbeat(self, key: str, value: bytes | None) -> None:
        before = self._forget(key)
        if value is not None:
            try:
                worker = HEARTBEAT.from_proto(read_message(work_messages_pb2.WorkerStatus, value))
            except (DecodeError, UnknownNumber):
                log.warning("unreadable heartbeat", worker=key)
                return
            if key != messaging.heartbeat_key(worker.pool, worker.worker_id):
                log.warning("heartbeat under another worker's key", worker=key, pool=worker.pool)
                return
            self._heartbeats[key] = (self._clock.monotonic(), worker)
            self._table.put(key, worker)
        after = self._heartbeats.get(key)
        if _relevant_fields(before) != _relevant_fields(after):
            self._changed()

    def _forget(self, key: str) -> tuple[float, Worker] | None:
        known = self._heartbeats.pop(key, None)
        if known is not None:
            self._table.drop(key, known[1].pool)
        return known


def _relevant_fields(heartbeat: tuple[float, Worker] | None) -> tuple[object, ...]:
    """The fields of a heartbeat that may change what the leader does."""
    if heartbeat is None:
        return ()
    worker = heartbeat[1]
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
            response = read_message(work_messages_pb2.ListPoolModelsResponse, reply.data)
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
