"""What is done of a response before the caller has it: users are told of a gate that failed."""

from collections.abc import Awaitable, Callable, Mapping

import grpc

from proctor.v1 import gate_service_pb2_grpc as gate_grpc
from proctor.v1.comparison_pb2 import GATE_VERDICT_FAIL
from proctor.v1.comparison_service_pb2 import GateRunResponse
from proctor.v1.gate_service_pb2 import TellGateRequest

Metadata = tuple[tuple[str, str | bytes], ...]
# Takes the response, the metadata of the call, and how long it may still take in seconds.
FollowUp = Callable[[bytes, Metadata, float | None], Awaitable[None]]


def follow_ups(scheduler: grpc.aio.Channel) -> Mapping[str, FollowUp]:
    """By method. They raise AioRpcError of the scheduler: a repeated call tells nothing twice."""
    gates: gate_grpc.GateServiceAsyncStub = gate_grpc.GateServiceStub(scheduler)

    async def tell_gate(response: bytes, metadata: Metadata, seconds: float | None) -> None:
        gate = GateRunResponse.FromString(response).gate
        if gate.verdict == GATE_VERDICT_FAIL:
            await gates.TellGate(TellGateRequest(gate=gate), timeout=seconds, metadata=metadata)

    return {"GateRun": tell_gate}
