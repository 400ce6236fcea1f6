"""Scores the stored answers of a run again from its page: no model is asked, nothing is recorded."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query
from starlette.responses import Response

from proctor.v1 import run_pb2, summary_pb2
from services.common.errors import DomainError, ErrorKind
from services.gateway.backends.calls import BackendCalls, Backends
from services.gateway.http.errors import FormFaults
from services.gateway.http.parameters import JobId
from services.gateway.pages.addresses import keep_address
from services.gateway.pages.page import PageOf
from services.gateway.pages.rescoring.form import RescoreForm, faults_of_refusal
from services.gateway.pages.rescoring.view import chosen_task, rescore_view
from services.gateway.pages.rows.runs import run_row

_REFUSED = frozenset({ErrorKind.INVALID, ErrorKind.CONFLICT})
_PAGE, _PART = "rescoring/rescore", "rescoring/rescore_part"

router = APIRouter(prefix="/runs", include_in_schema=False)

_Name = Annotated[str, Query(max_length=512)]
_Text = Annotated[str, Query(max_length=4096)]


async def _asked(  # noqa: PLR0917  # the fields of the form
    task: _Name = "",
    metric: _Name = "",
    options: _Text = "",
    rule: _Name = "",
    filters: _Text = "",
    reasoning: _Name = "",
) -> RescoreForm:
    return RescoreForm(task, metric.strip(), options.strip(), rule, filters.strip(), reasoning)


@router.get("/{job_id}/rescore")
async def show_form(
    page: PageOf, backends: BackendCalls, job_id: JobId, form: Annotated[RescoreForm, Depends(_asked)]
) -> Response:
    run, summary = await _run(backends, job_id)
    return page.show(_PAGE, rescore_view(run_row(run), summary, form, {}), part=_PART)


@router.post("/{job_id}/rescore")
async def rescore(  # noqa: PLR0917  # the fields of the form
    page: PageOf,
    backends: BackendCalls,
    job_id: JobId,
    task: Annotated[str, Form(max_length=512)] = "",
    metric: Annotated[str, Form(max_length=512)] = "",
    options: Annotated[str, Form(max_length=4096)] = "",
    rule: Annotated[str, Form(max_length=512)] = "",
    filters: Annotated[str, Form(max_length=4096)] = "",
    reasoning: Annotated[str, Form(max_length=512)] = "",
) -> Response:
    form = RescoreForm(task, metric.strip(), options.strip(), rule, filters.strip(), reasoning)
    run, summary = await _run(backends, job_id)
    faults, response, status = {}, None, 200
    try:
        request = form.to_proto(job_id, chosen_task(summary, form.task).task)
        # All answers of the task are scored again before it returns.
        results = backends.results
        response = await results.rescoring.RescoreTask(request)
    except FormFaults as error:
        faults, status = dict(error.faults), 422
    except DomainError as error:
        if error.kind not in _REFUSED:
            raise
        faults, status = dict(faults_of_refusal(error)), 422
    view = rescore_view(run_row(run), summary, form, faults, response)
    shown = page.show(_PAGE, view, part=_PART, status=status)
    if page.is_part:
        keep_address(shown, form.link(view.path))
    return shown


async def _run(backends: Backends, run_id: str) -> tuple[run_pb2.Run, summary_pb2.RunSummary]:
    return await asyncio.gather(backends.scheduler.run(run_id), backends.results.summary(run_id))
