"""A shard under which workers or engines keep dying is cut up, until the culprit is alone."""

from __future__ import annotations

from services.worker.consumer.execute_shard import record
from services.worker.consumer.in_flight import Holding
from services.worker.engines.engine import FailureClass
from services.worker.execution.batch_outcomes import OutcomeBatcher
from services.worker.execution.shard import Failure, Outcome

FAULTS_ALLOWED = 2


def is_suspect(holding: Holding) -> bool:
    return holding.faults >= FAULTS_ALLOWED


async def isolate_shard(holding: Holding, batcher: OutcomeBatcher) -> None:
    """Sends each sample in a message of its own, or records the one that is left as a failure."""
    samples = tuple(holding.unfinished.values())
    if len(holding.shard.samples) > 1:
        holding.is_handed_on = True
        for sample in samples:
            await holding.message.send_single(sample.number)
        return
    message = (
        f"This sample was delivered {holding.faults} times and never ended: "
        "its engine or worker died, or lost its connection, each time."
    )
    failure = Failure(FailureClass.ENGINE, message)
    for sample in samples:
        record(holding, Outcome(holding.shard, sample.number, failure), batcher)
    batcher.flush(holding.shard)
