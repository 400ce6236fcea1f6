"""Tells on core NATS how far a run is. Who was not listening asks for the counts."""

from nats.aio.client import Client

from services.common.jetstream import TRANSIENT_NATS
from services.common.structured_logs import get_logger
from services.common.subjects import progress_subject
from services.results.runs.proto_runs import counts_to_proto
from services.results.runs.run_counts import RunCounts

log = get_logger()


class NatsProgressPublisher:
    def __init__(self, connection: Client) -> None:
        self._connection = connection

    async def publish(self, counts: RunCounts) -> None:
        payload = counts_to_proto(counts).SerializeToString()
        try:
            await self._connection.publish(progress_subject(counts.run_id), payload)
        except TRANSIENT_NATS as error:
            log.info("progress not told", run_id=counts.run_id, error=repr(error))
