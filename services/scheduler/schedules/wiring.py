"""Joins the parts of schedules."""

from collections.abc import Mapping
from dataclasses import dataclass

from services.common.grpc.server import Registration
from services.scheduler.postgres import Connections
from services.scheduler.runs.wiring import RunParts
from services.scheduler.schedules.change_schedule import ChangeSchedule
from services.scheduler.schedules.grpc_api import SERVICE_NAME, GrpcScheduleApi
from services.scheduler.schedules.postgres import PostgresLedSchedules, PostgresSchedules
from services.scheduler.schedules.submit_due import SubmitDue


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleParts:
    apis: Mapping[str, Registration]
    submit_due: SubmitDue


def make_schedules(connections: Connections, *, runs: RunParts) -> ScheduleParts:
    session, clock = connections.postgres, connections.clock
    schedules = PostgresSchedules(session=session)
    change = ChangeSchedule(schedules=schedules, submit=runs.submit, clock=clock)
    led = PostgresLedSchedules(session=session, runs=runs.store)
    return ScheduleParts(
        apis={SERVICE_NAME: GrpcScheduleApi(change=change, schedules=schedules).register},
        submit_due=SubmitDue(schedules=led, submit=runs.submit, controls=runs.controls, clock=clock),
    )
