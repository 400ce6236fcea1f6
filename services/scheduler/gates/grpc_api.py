"""GateService: what the gateway reports of gates that callers asked for."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import dataclass

import grpc

from proctor.v1 import comparison_pb2
from proctor.v1 import gate_service_pb2 as gate_pb2
from proctor.v1 import gate_service_pb2_grpc as gate_grpc
from services.common.clock import Clock
from services.common.grpc.server import RpcContext
from services.scheduler.gates.postgres import PostgresGatedRuns
from services.scheduler.gates.proto import decision_from_proto
from services.scheduler.runs.orders.run_gate import RunGate

SERVICE_NAME = gate_pb2.DESCRIPTOR.services_by_name["GateService"].full_name


@dataclass(frozen=True, kw_only=True)
class GrpcGateApi(gate_grpc.GateServiceServicer):
    told: PostgresGatedRuns
    clock: Clock

    def register(self, server: grpc.aio.Server) -> None:
        gate_grpc.add_GateServiceServicer_to_server(self, server)

    async def TellGate(
        self, request: gate_pb2.TellGateRequest, context: RpcContext
    ) -> gate_pb2.TellGateResponse:
        decided = request.gate
        if decided.verdict == comparison_pb2.GATE_VERDICT_FAIL:
            run, base = (each.run_id for each in decided.runs)
            gate = RunGate(base_run_id=base, margin_points=decided.margin_points, alpha=decided.alpha)
            # Worse by more than a margin is worse.
            decision = decision_from_proto(decided, decided)
            await self.told.tell(run, gate, decision, self.clock.now())
        return gate_pb2.TellGateResponse()
