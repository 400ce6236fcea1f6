"""The form of an order. Its address holds what is entered, so that an order can be sent as a link."""

import asyncio
import uuid

from fastapi import APIRouter, Request
from starlette.responses import Response

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1.dataset_service_pb2 import GetDatasetRequest, ListDatasetsRequest, ListDatasetsResponse
from proctor.v1.queue_service_pb2 import GetQueueRequest
from services.common.errors import DomainError, ErrorKind
from services.common.requests.request_fields import MAX_PAGE_SIZE
from services.gateway.auth.identity import User
from services.gateway.backends.calls import Results, ResultsCalls, Scheduler, SchedulerCalls
from services.gateway.http.errors import FormFaults
from services.gateway.http.paths import ORDER_PAGE
from services.gateway.http.presentation import optional, present
from services.gateway.pages import text
from services.gateway.pages.addresses import address, keep_address
from services.gateway.pages.order_fields import REFUSALS
from services.gateway.pages.orders.form import CRON, GATE_BASE, OrderForm, faults_of_refusal
from services.gateway.pages.orders.schedule import add_by_form
from services.gateway.pages.orders.several import submit_form
from services.gateway.pages.orders.view import EarlierRun, Estimate, OfferedOptions, earlier_run, order_view
from services.gateway.pages.page import Notice, PageOf

router = APIRouter(prefix=ORDER_PAGE, include_in_schema=False)


@router.get("")
async def show_form(
    request: Request, page: PageOf, scheduler: SchedulerCalls, results: ResultsCalls, user: User
) -> Response:
    form = OrderForm.of(request.query_params)
    listed, estimate = await asyncio.gather(
        _listed(scheduler, results, form), _estimate(scheduler, form, user)
    )
    # Faults without a field are shown beside the estimate.
    faults = {name: each for name, each in estimate.refusal.items() if name} if estimate else {}
    view = order_view(form, listed, faults, str(uuid.uuid4()), estimate)
    response = page.show("orders/new", view, part="orders/new_part")
    # The estimate is renewed after each change, as a part of the whole page.
    if page.is_part or page.target == "estimate":
        keep_address(response, form.link())
    return response


@router.post("")
async def submit(
    request: Request, page: PageOf, scheduler: SchedulerCalls, results: ResultsCalls, user: User
) -> Response:
    """The page of the new run or schedule, or a list of several; or the form again with its faults."""
    form = OrderForm.of(await request.form())
    request_id = _request_id(form)
    try:
        # A gate without times is a fault of the form, not a run that nobody gates.
        if form.get(CRON) or form.get(GATE_BASE):
            schedule = await add_by_form(scheduler, form, user, request_id)
            return page.leave(f"/schedules/{schedule.schedule_id}", Notice("The schedule is added."))
        submitted = await submit_form(scheduler, form, user, request_id)
    except FormFaults as error:
        faults = error.faults
    except DomainError as error:
        if error.kind not in REFUSALS:
            raise
        faults = faults_of_refusal(error)
    else:
        if submitted.tag:
            count = len(submitted.responses)
            started = f"{count} runs started. They can be compared once they have completed."
            return page.leave(address("/runs", [("tag", submitted.tag)]), Notice(started))
        [response] = submitted.responses
        return page.leave(f"/runs/{response.run.run_id}", Notice(_ordered(response)))
    listed, estimate = await asyncio.gather(
        _listed(scheduler, results, form), _estimate(scheduler, form, user)
    )
    view = order_view(form, listed, faults, request_id, estimate)
    refused = page.show("orders/new", view, part="orders/new_part", status=422)
    # The address of the page that was sent may be older than what is entered.
    keep_address(refused, form.link())
    return refused


def _request_id(form: OrderForm) -> str:
    """The request id of the form as it was rendered, so that a form that is sent twice is one order."""
    try:
        return str(uuid.UUID(form.get("request_id")))
    except ValueError:
        return str(uuid.uuid4())


def _ordered(response: scheduler_pb2.SubmitRunResponse) -> str:
    seconds, cost = optional(response, "estimated_seconds"), optional(response, "estimated_cost")
    takes = f" It should take about {text.duration(seconds)}." if seconds is not None else ""
    costs = f" It should cost about {text.money(cost, response.run.price.currency)}." if cost else ""
    return f"Run started.{takes}{costs}"


async def _estimate(scheduler: Scheduler, form: OrderForm, user: str) -> Estimate | None:
    """None for an incomplete order. An order that would be refused has the reason."""
    if not (form.get("model") and form.benchmark):
        return None
    try:
        request = scheduler_pb2.EstimateRunRequest(order=form.to_orders()[0], user=user)
        response = await scheduler.runs.EstimateRun(request)
    except FormFaults as error:
        return Estimate(refusal=dict(error.faults))
    except DomainError as error:
        if error.kind not in REFUSALS:
            raise
        return Estimate(refusal=dict(faults_of_refusal(error)))
    return present(Estimate, response, response.price)


async def _listed(scheduler: Scheduler, results: Results, form: OrderForm) -> OfferedOptions:
    models, suites, datasets, earlier, queue = await asyncio.gather(
        scheduler.runs.ListModels(scheduler_pb2.ListModelsRequest()),
        scheduler.runs.ListSuites(scheduler_pb2.ListSuitesRequest()),
        _datasets(scheduler, form),
        _earlier_run(scheduler, results, form),
        # One entry is enough: only the length of the queue is shown.
        scheduler.queue.GetQueue(GetQueueRequest(page_size=1)),
    )
    return OfferedOptions(models, suites, datasets, earlier, queue.pending_total)


async def _datasets(scheduler: Scheduler, form: OrderForm) -> ListDatasetsResponse:
    """The newest, and the chosen one if it is older."""
    listed = await scheduler.datasets.ListDatasets(ListDatasetsRequest(page_size=MAX_PAGE_SIZE))
    chosen = form.benchmark if form.kind == "dataset" else ""
    if not chosen or chosen in [each.dataset_id for each in listed.datasets]:
        return listed
    try:
        found = await scheduler.datasets.GetDataset(GetDatasetRequest(dataset_id=chosen))
    except DomainError as error:
        # The order says that there is none.
        if error.kind not in {ErrorKind.NOT_FOUND, ErrorKind.INVALID}:
            raise
    else:
        listed.datasets.append(found.dataset)
    return listed


async def _earlier_run(scheduler: Scheduler, results: Results, form: OrderForm) -> EarlierRun | None:
    """None without a completed run of this model on this."""
    if not (form.get("model") and form.benchmark):
        return None
    request = scheduler_pb2.ListRunsRequest(
        page_size=1,
        state=run_pb2.RUN_STATE_COMPLETED,
        model=form.get("model"),
        benchmark=form.benchmark,
    )
    try:
        runs = (await scheduler.runs.ListRuns(request)).runs
        if not runs:
            return None
        summary = await results.summary(runs[0].run_id)
    except DomainError as error:
        # The form may still be incomplete; the check of the order reports its faults.
        if error.kind is ErrorKind.UNAVAILABLE:
            raise
        return None
    return earlier_run(runs[0], summary)
