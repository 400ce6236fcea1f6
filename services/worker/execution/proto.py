"""The dispatch proof of a shard, as outcomes and artifacts return it to the services that check it."""

from proctor.v1 import work_messages_pb2
from proctor.wire.proofs import ranges_to_proto
from services.worker.execution.shard import Shard


def proof_to_proto(shard: Shard) -> work_messages_pb2.DispatchProof:
    return work_messages_pb2.DispatchProof(
        shard=shard.number,
        attempt=shard.attempt,
        rollout=shard.rollout,
        samples=ranges_to_proto(shard.dispatched_samples),
        dispatch_proof=shard.dispatch_proof,
    )
