"""The form of an order with times: a schedule of it."""

import math
import uuid

from proctor.v1 import schedule_service_pb2 as schedule_pb2
from services.gateway.backends.calls import Scheduler
from services.gateway.http.errors import FormFaults
from services.gateway.pages.orders.form import ALSO, CRON, GATE_BASE, GATE_MARGIN, TIME_ZONE, OrderForm

# The base of the run before.
PREVIOUS = "previous"


async def add_by_form(
    scheduler: Scheduler, form: OrderForm, user: str, request_id: str
) -> schedule_pb2.Schedule:
    """A form that is sent again with its `request_id` gives the same schedule. Raises FormFaults."""
    orders, labels = form.to_orders(), form.labels()
    if len(orders) > 1:
        raise FormFaults({ALSO: "A schedule has one model. Add a schedule for each, or run until decided."})
    if not labels.name:
        raise FormFaults({"name": "Name the schedule: its runs have the same name."})
    request = schedule_pb2.AddScheduleRequest(
        cron=form.get(CRON),
        time_zone=form.get(TIME_ZONE),
        order=orders[0],
        labels=labels,
        user=user,
        request_id=request_id,
        gate=_gate(form),
    )
    return (await scheduler.schedules.AddSchedule(request)).schedule


def _gate(form: OrderForm) -> schedule_pb2.ScheduleGate | None:
    """None for a form that names no base. Raises FormFaults."""
    base, points = form.get(GATE_BASE), form.get(GATE_MARGIN)
    if not base:
        if points:
            raise FormFaults({GATE_BASE: f"Name what each run is gated against: {PREVIOUS}, or a run."})
        return None
    gate = schedule_pb2.ScheduleGate()
    try:
        gate.base_run_id = "" if base == PREVIOUS else str(uuid.UUID(base))
    except ValueError as error:
        raise FormFaults({GATE_BASE: f"Write {PREVIOUS}, or the id of a run."}) from error
    try:
        if points:
            gate.margin_points = float(points)
    except ValueError as error:
        raise FormFaults({GATE_MARGIN: "Write a number of points, such as 1."}) from error
    if not math.isfinite(gate.margin_points):
        raise FormFaults({GATE_MARGIN: "Write a number of points, such as 1."})
    return gate
