"""The dispatch proof of a shard, as outcomes and artifacts return it to the services that check it."""

from proctor.v1 import work_messages_pb2
from services.worker.execution.shard import DispatchProof


def proof_to_proto(proof: DispatchProof) -> work_messages_pb2.DispatchProof:
    return work_messages_pb2.DispatchProof(dispatched=proof.dispatched, hmac=proof.hmac)
