"""Joins the parts of gates."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass

from services.common.grpc.server import Registration
from services.scheduler.gates.gate_runs import GateRuns
from services.scheduler.gates.gated_run import GatedRun
from services.scheduler.gates.grpc_api import SERVICE_NAME, GrpcGateApi
from services.scheduler.gates.grpc_gates import GrpcGates
from services.scheduler.gates.postgres import PostgresGatedRuns
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.postgres import Connections


@dataclass(frozen=True, slots=True, kw_only=True)
class GateParts:
    apis: Mapping[str, Registration]
    gate_runs: GateRuns[GatedRun]

    def leader_loops(self, token: FencingToken) -> Mapping[str, Coroutine[None, None, None]]:
        return {"gate runs": self.gate_runs.lead(token, "gate runs")}


def make_gates(connections: Connections) -> GateParts:
    gates = GrpcGates(channel=connections.results)
    stored = PostgresGatedRuns(session=connections.postgres)
    return GateParts(
        apis={SERVICE_NAME: GrpcGateApi(told=stored, clock=connections.clock).register},
        gate_runs=GateRuns(gated=stored, gates=gates, clock=connections.clock),
    )
