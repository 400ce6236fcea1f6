"""The form of an order with times: a schedule of it."""

from proctor.v1 import schedule_service_pb2 as schedule_pb2
from services.gateway.backends.calls import Scheduler
from services.gateway.http.errors import FormFaults
from services.gateway.pages.orders.form import ALSO, CRON, TIME_ZONE, OrderForm


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
    )
    return (await scheduler.schedules.AddSchedule(request)).schedule
