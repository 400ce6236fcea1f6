"""The other workers of the pool, from their heartbeats in the bucket WORKERS."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.v1 import work_messages_pb2
from services.common import subjects
from services.common.jetstream import TRANSIENT_NATS, JetStream
from services.common.structured_logs import get_logger
from services.worker.backlog import Colleague
from services.worker.nats_heartbeat import Identity

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
