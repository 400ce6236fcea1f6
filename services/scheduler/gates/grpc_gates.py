"""Gates that results decides, over gRPC."""

import grpc

from proctor.v1 import comparison_pb2, comparison_service_pb2
from proctor.v1 import comparison_service_pb2_grpc as comparison_grpc
from services.common.grpc.errors import remote_error
from services.scheduler.gates.gated_run import GateDecision
from services.scheduler.gates.proto import decision_from_proto
from services.scheduler.runs.orders.run_gate import RunGate

# Longer than results may take for a comparison, so that its own refusal arrives.
_CALL_SECONDS = 330.0


class GrpcGates:
    """A client of ComparisonService; failures are raised as `RemoteError`."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._comparisons = comparison_grpc.ComparisonServiceStub(channel)

    async def decide(self, run_id: str, base_run_id: str, gate: RunGate) -> GateDecision:
        decided = await self._gate(run_id, base_run_id, gate.margin_points, gate.alpha)
        failed, dropped = comparison_pb2.GATE_VERDICT_FAIL, decided
        if decided.verdict != failed and gate.margin_points:
            # A drop within what is accepted; results keeps the differences of the first call.
            dropped = await self._gate(run_id, base_run_id, 0.0, gate.alpha)
        return decision_from_proto(decided, dropped)

    async def _gate(
        self, run_id: str, base_run_id: str, margin_points: float, alpha: float
    ) -> comparison_pb2.Gate:
        request = comparison_service_pb2.GateRunRequest(
            run_id=run_id, base_run_id=base_run_id, margin_points=margin_points, alpha=alpha
        )
        try:
            return (await self._comparisons.GateRun(request, timeout=_CALL_SECONDS)).gate
        except grpc.aio.AioRpcError as error:
            raise remote_error(error) from error
