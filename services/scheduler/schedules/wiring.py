"""Joins the parts of schedules."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass

from services.common.grpc.server import Registration
from services.scheduler.gates.gate_runs import GateRuns
from services.scheduler.gates.grpc_gates import GrpcGates
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.postgres import Connections
from services.scheduler.runs.wiring import RunParts
from services.scheduler.schedules.change_schedule import ChangeSchedule
from services.scheduler.schedules.grpc_api import SERVICE_NAME, GrpcScheduleApi
from services.scheduler.schedules.postgres import PostgresLedSchedules, PostgresSchedules
from services.scheduler.schedules.postgres_gates import PostgresGatedFirings
from services.scheduler.schedules.schedule import GatedFiring
from services.scheduler.schedules.submit_due import SubmitDue


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleParts:
    apis: Mapping[str, Registration]
    submit_due: SubmitDue
    gate_firings: GateRuns[GatedFiring]

    def leader_loops(self, token: FencingToken) -> Mapping[str, Coroutine[None, None, None]]:
        return {
            "fire schedules": self.submit_due.lead(token),
            "gate firings": self.gate_firings.lead(token, "gate firings"),
        }


def make_schedules(connections: Connections, *, runs: RunParts) -> ScheduleParts:
    session, clock = connections.postgres, connections.clock
    schedules = PostgresSchedules(session=session)
    change = ChangeSchedule(schedules=schedules, submit=runs.submit, clock=clock)
    gates = GrpcGates(channel=connections.results)
    led = PostgresLedSchedules(session=session, runs=runs.store)
    return ScheduleParts(
        apis={SERVICE_NAME: GrpcScheduleApi(change=change, schedules=schedules).register},
        submit_due=SubmitDue(schedules=led, submit=runs.submit, controls=runs.controls, clock=clock),
        gate_firings=GateRuns(gated=PostgresGatedFirings(session=session), gates=gates, clock=clock),
    )
