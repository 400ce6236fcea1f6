"""The playground: one prompt to some models side by side. An answer can be kept as a row of a data set.

It orders what every page orders: a data set of one row, and a run of it for each model. So its answers are
durable, priced and limited like others, and nothing asks a model past the queue.
"""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import Response

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.wire.uploads import upload_messages
from services.common.errors import DomainError, ErrorKind
from services.gateway.auth.identity import Now, User
from services.gateway.backends.calls import BackendCalls, Backends, Scheduler, SchedulerCalls
from services.gateway.http.errors import FormFaults
from services.gateway.http.parameters import JobId
from services.gateway.http.project_names import key_project
from services.gateway.pages.addresses import address
from services.gateway.pages.order_fields import REFUSALS
from services.gateway.pages.orders.form import ALSO, faults_of_refusal
from services.gateway.pages.orders.several import submit_form
from services.gateway.pages.page import Notice, PageOf
from services.gateway.pages.playground.form import MAX_MODELS, PARAMETERS, PlaygroundForm, prompt_of
from services.gateway.pages.playground.view import AnswerColumn, PlaygroundView, answer_column

router = APIRouter(prefix="/playground", include_in_schema=False)


@router.get("")
async def show(
    page: PageOf,
    backends: BackendCalls,
    now: Now,
    run: Annotated[list[JobId] | None, Query(max_length=MAX_MODELS)] = None,
) -> Response:
    runs = await _runs(backends.scheduler, run or [])
    columns = await asyncio.gather(*(_column(backends, each) for each in runs))
    if page.target == "live":
        return page.show(
            "playground/playground", PlaygroundView({}, now, columns=columns), part="playground/answers_part"
        )
    values = await _values(backends.scheduler, runs)
    return page.show("playground/playground", await _view(backends.scheduler, values, now, columns=columns))


@router.post("")
async def ask(page: PageOf, scheduler: SchedulerCalls, user: User, now: Now, request: Request) -> Response:
    """The page with the answers as they come; or the form again, with what is wrong at its field."""
    form = PlaygroundForm.of(await request.form())
    try:
        form.check()
        # One for each: what was stored for an order that is refused may be changed before it is sent again.
        stored_by, ordered_by = form.id_of(form.row().decode()), form.id_of(sorted(form.values.items()))
        dataset_id = await _store(scheduler, form.name, form.row(), user, stored_by)
        submitted = await submit_form(scheduler, form.order(dataset_id), user, ordered_by)
    except FormFaults as error:
        faults = dict(error.faults)
    except DomainError as error:
        if error.kind not in REFUSALS:
            raise
        faults = dict(faults_of_refusal(error))
    else:
        return page.go(address("/playground", [("run", each.run.run_id) for each in submitted.responses]))
    for name in ("model", ALSO):
        if name in faults:
            faults["models"] = faults.pop(name)
    view = await _view(scheduler, form.values, now, faults=faults)
    return page.show("playground/playground", view, status=422)


@router.post("/keep")
async def keep(page: PageOf, backends: BackendCalls, user: User, run: Annotated[JobId, Form()]) -> Response:
    """Stores the prompt with the answer of a run as the expected one: a data set of one row."""
    [found] = await _runs(backends.scheduler, [run])
    column = await _column(backends, found)
    values = await _row_values(backends.scheduler, found)
    if column.text is None or not values:
        return page.go(
            address("/playground", [("run", run)]), Notice("There is no answer to keep.", is_problem=True)
        )
    form = PlaygroundForm(values)
    request_id = str(uuid.uuid5(uuid.UUID(run), "kept"))
    dataset_id = await _store(backends.scheduler, form.name, form.row(column.text), user, request_id)
    return page.go(f"/datasets/{dataset_id}", Notice("The prompt is stored, with the answer as its target."))


async def _view(
    scheduler: Scheduler,
    values: Mapping[str, str],
    now: datetime,
    *,
    columns: Sequence[AnswerColumn] = (),
    faults: Mapping[str, str] | None = None,
) -> PlaygroundView:
    listed = await scheduler.runs.ListModels(scheduler_pb2.ListModelsRequest())
    return PlaygroundView(
        values=values,
        now=now,
        offered=[each.model for each in listed.models],
        faults=faults or {},
        request_id=values.get("request_id") or str(uuid.uuid4()),
        columns=columns,
    )


async def _store(scheduler: Scheduler, name: str, row: bytes, user: str, request_id: str) -> str:
    """The id of the data set. Raises FormFaults for a row that is refused."""

    async def parts() -> AsyncGenerator[dataset_pb2.DatasetHeader | bytes]:
        yield dataset_pb2.DatasetHeader(
            name=name,
            user=user,
            format=dataset_pb2.DATASET_FORMAT_JSONL,
            request_id=request_id,
            project_id=key_project(),
        )
        yield row

    messages = upload_messages(dataset_pb2.UploadDatasetRequest, parts())
    stored = await scheduler.datasets.UploadDataset(messages)
    if not stored.HasField("dataset"):
        raise FormFaults(
            {"prompt": next((fault.problem for fault in stored.faults), "The prompt is refused.")}
        )
    return stored.dataset.dataset_id


async def _runs(scheduler: Scheduler, run_ids: Sequence[str]) -> Sequence[run_pb2.Run]:
    return await asyncio.gather(*(scheduler.run(run_id) for run_id in run_ids))


async def _column(backends: Backends, run: run_pb2.Run) -> AnswerColumn:
    request = results_pb2.ListOutcomesRequest(run_id=run.run_id, page_size=1)
    listed = (await backends.results.recorded_outcomes(request)).outcomes
    # Of a run over more rows, the first that is recorded may be of another row than the prompt.
    return answer_column(run, next((each for each in listed if each.outcome.sample == 0), None))


async def _values(scheduler: Scheduler, runs: Sequence[run_pb2.Run]) -> Mapping[str, str]:
    """The form as it was when the runs were ordered."""
    if not runs:
        return {}
    params = runs[0].order.params
    set_fields = {field.name: value for field, value in params.ListFields()}
    given = {name: _number(set_fields[name]) for name in PARAMETERS if name in set_fields}
    models = ", ".join(run.order.model for run in runs)
    return {**given, "models": models, **await _row_values(scheduler, runs[0])}


async def _row_values(scheduler: Scheduler, run: run_pb2.Run) -> Mapping[str, str]:
    """The prompt of the first row of a run; empty once its data set is deleted."""
    request = dataset_pb2.PreviewDatasetRequest(dataset_id=run.order.dataset_id, row_count=1)
    try:
        rows = (await scheduler.datasets.PreviewDataset(request)).rows
    except DomainError as error:
        if error.kind not in {ErrorKind.NOT_FOUND, ErrorKind.INVALID}:
            raise
        return {}
    return prompt_of(json.loads(rows[0].body_json)) if rows else {}


def _number(value: object) -> str:
    """All digits of a seed."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)
