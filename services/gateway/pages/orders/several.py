"""One order of several models: a run for each, which have a tag of their own."""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.names.run_labels import tag_of_order
from services.common.errors import DomainError
from services.gateway.backends.calls import Scheduler
from services.gateway.http.errors import FormFaults
from services.gateway.pages.order_fields import REFUSALS
from services.gateway.pages.orders.form import ALSO, OrderForm


@dataclass(frozen=True, slots=True)
class Submitted:
    """The answers of the scheduler in the order of the models; `tag` is empty for a single one."""

    responses: Sequence[scheduler_pb2.SubmitRunResponse]
    tag: str


async def submit_form(scheduler: Scheduler, form: OrderForm, user: str, request_id: str) -> Submitted:
    """A form that is sent again with its `request_id` gives the same runs.

    Raises FormFaults, and DomainError of the first model; nothing is started then.
    """
    orders, labels = form.to_orders(), form.labels()
    if len(orders) == 1:
        return Submitted([await _submit(scheduler, orders[0], labels, user, request_id)], "")
    await asyncio.gather(*(_check(scheduler, order, user) for order in orders[1:]))
    tag = tag_of_order(request_id)
    labels.tags.append(tag)
    responses = []
    for order in orders:
        own = str(uuid.uuid5(uuid.UUID(request_id), order.model))
        responses.append(await _submit(scheduler, order, labels, user, own))
    return Submitted(responses, tag)


async def _check(scheduler: Scheduler, order: run_pb2.RunOrder, user: str) -> None:
    try:
        await scheduler.runs.EstimateRun(scheduler_pb2.EstimateRunRequest(order=order, user=user))
    except DomainError as error:
        if error.kind not in REFUSALS:
            raise
        raise FormFaults({ALSO: f"{order.model}: {error.message}"}) from error


async def _submit(
    scheduler: Scheduler, order: run_pb2.RunOrder, labels: run_pb2.RunLabels, user: str, request_id: str
) -> scheduler_pb2.SubmitRunResponse:
    request = scheduler_pb2.SubmitRunRequest(order=order, user=user, request_id=request_id, labels=labels)
    return await scheduler.runs.SubmitRun(request)
