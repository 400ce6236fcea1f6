"""The answers of a run, one by one: filters, pages, and the chosen answer in full."""

import asyncio
from collections.abc import Awaitable
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from proctor.v1 import results_service_pb2 as results_pb2
from services.common.errors import DomainError, ErrorKind
from services.gateway.backends.calls import ResultsCalls, SchedulerCalls
from services.gateway.http.parameters import JobId
from services.gateway.pages.answers.filters import AnswerFilters
from services.gateway.pages.answers.view import answers_view
from services.gateway.pages.page import PageOf
from services.gateway.pages.runs_table import run_row

# Ids of the elements that a script replaces.
_DETAIL = "detail"

router = APIRouter(prefix="/runs", include_in_schema=False)


@router.get("/{job_id}/results")
async def show_answers(
    page: PageOf,
    scheduler: SchedulerCalls,
    results: ResultsCalls,
    job_id: JobId,
    filters: Annotated[AnswerFilters, Depends()],
) -> Response:
    run, summary, (listed, fault) = await asyncio.gather(
        scheduler.run(job_id),
        results.summary(job_id),
        _listed(results.recorded_outcomes(filters.to_proto(job_id))),
    )
    view = answers_view(run_row(run), summary, listed, filters.named(), fault)
    status = 422 if fault else 200
    if page.target == _DETAIL:
        response = page.show("answers/answers", view, part="answers/detail_part", status=status)
        # Rows that are looked at are not steps back.
        response.headers["HX-Replace-Url"] = view.address
        return response
    response = page.show("answers/answers", view, part="answers/list_part", status=status)
    if page.is_part:
        response.headers["HX-Push-Url"] = view.address
    return response


async def _listed(
    call: Awaitable[results_pb2.ListOutcomesResponse],
) -> tuple[results_pb2.ListOutcomesResponse, str]:
    """The answers, or none and the sentence about a filter that the run refuses."""
    try:
        return await call, ""
    except DomainError as error:
        if error.kind is not ErrorKind.INVALID:
            raise
        return results_pb2.ListOutcomesResponse(), str(error)
