"""Quarantine: a shard whose deliveries keep failing is split, until the sample at fault is alone."""

from proctor.values.outcome import Failure, FailureClass
from services.worker.consumer.execute_shard import record
from services.worker.consumer.in_flight import InFlightShard
from services.worker.execution.batch_outcomes import OutcomeBatcher
from services.worker.execution.shard import Outcome

FAILED_DELIVERIES_ALLOWED = 2


def needs_quarantine(in_flight: InFlightShard) -> bool:
    return in_flight.failed_deliveries >= FAILED_DELIVERIES_ALLOWED


async def quarantine_shard(in_flight: InFlightShard, batcher: OutcomeBatcher) -> None:
    """Publishes each sample in a message of its own; a sample that is alone already is recorded as failed."""
    samples = tuple(in_flight.unfinished.values())
    if len(in_flight.shard.samples) > 1:
        in_flight.is_forwarded = True
        for sample in samples:
            await in_flight.message.send_single(sample.number)
        return
    message = (
        f"This sample was delivered {in_flight.failed_deliveries} times and never ended: "
        "its engine or worker died, or lost its connection, each time."
    )
    failure = Failure(FailureClass.ENGINE, message)
    for sample in samples:
        record(in_flight, Outcome(in_flight.shard, sample.number, failure), batcher)
    batcher.flush(in_flight.shard)
