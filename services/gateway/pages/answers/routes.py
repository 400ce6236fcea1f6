"""The answers of a run, one by one: filters, pages, the chosen answer in full, and marks on answers.

A script gets the answer's marks after a change, in place of the page.
"""

import asyncio
import json
from collections.abc import Awaitable
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Form
from pydantic import BaseModel, Field
from starlette.responses import Response

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.values.plain import INT32_MAX
from services.common.errors import DomainError, ErrorKind
from services.gateway.auth.identity import User
from services.gateway.backends.calls import ResultsCalls, SchedulerCalls
from services.gateway.http.api_errors import NO_SUCH_PAGE
from services.gateway.http.parameters import JSON_INT_MAX, JobId
from services.gateway.pages.answers.filters import OutcomeFilters
from services.gateway.pages.answers.view import answers_view
from services.gateway.pages.page import Notice, PageOf
from services.gateway.pages.rows.answer_marks import GOLDEN, WRONG, MarkView

# Ids of the elements that a script replaces.
_DETAIL = "detail"

router = APIRouter(prefix="/runs", include_in_schema=False)
_DONE = {
    GOLDEN: "The {subject} is marked as golden.",
    WRONG: "The {subject} is marked as wrong. Its score stays as it is.",
    "": "The {subject} has no mark any more.",
}


@router.get("/{job_id}/results")
async def show_answers(
    *,
    page: PageOf,
    scheduler: SchedulerCalls,
    results: ResultsCalls,
    job_id: JobId,
    filters: Annotated[OutcomeFilters, Depends()],
    on: str = "",
) -> Response:
    """With `on` a script goes on with a search by itself, which is no step back."""
    run, summary, (listed, fault) = await asyncio.gather(
        scheduler.run(job_id),
        results.summary(job_id),
        _listed(results.recorded_outcomes(filters.to_proto(job_id))),
    )
    is_detail = page.target == _DETAIL
    view = answers_view(run, summary, listed, filters.named(), fault, opens_first=not is_detail)
    status = 422 if fault else 200
    if is_detail:
        response = page.show("answers/answers", view, part="answers/detail_part", status=status)
        # Rows that are looked at are not steps back.
        response.headers["HX-Replace-Url"] = view.address
        return response
    response = page.show("answers/answers", view, part="answers/list_part", status=status)
    if page.is_part:
        response.headers["HX-Replace-Url" if on else "HX-Push-Url"] = view.address
    return response


async def _listed(
    call: Awaitable[results_pb2.ListOutcomesResponse],
) -> tuple[results_pb2.ListOutcomesResponse, str]:
    """The answers, or none and the sentence about a filter that the run refuses."""
    try:
        return await call, ""
    except DomainError as error:
        # A page of the list that does not exist is not a filter: the page of errors leads to the first one.
        if error.kind is not ErrorKind.INVALID or error.reason == NO_SUCH_PAGE:
            raise
        return results_pb2.ListOutcomesResponse(), str(error)


class MarkForm(BaseModel):
    """An answer, its mark from now on ("" for none), its name on the page, and the page to go back to.

    `subject` is "verdict" for an answer of a judge.
    """

    sample: Annotated[int, Field(ge=0, le=JSON_INT_MAX)]
    rollout: Annotated[int, Field(ge=0, le=INT32_MAX)] = 0
    mark: Literal["golden", "wrong", ""] = ""
    name: Annotated[str, Field(max_length=1)] = ""
    subject: Literal["verdict", ""] = ""
    back: Annotated[str, Field(max_length=4096)] = ""


@router.post("/{job_id}/marks")
async def change_mark(
    page: PageOf, results: ResultsCalls, user: User, job_id: JobId, form: Annotated[MarkForm, Form()]
) -> Response:
    request = answer_pb2.MarkAnswersRequest(
        run_id=job_id,
        answers=[answer_pb2.AnswerKey(sample=form.sample, rollout=form.rollout)],
        is_golden=form.mark == GOLDEN,
        is_marked_wrong=form.mark == WRONG,
        user=user,
    )
    await results.answers.MarkAnswers(request)
    done = _DONE[form.mark].format(subject=form.subject or "answer")
    if page.is_part:
        view = MarkView(job_id, form.sample, form.rollout, form.mark, form.name, form.subject)
        response = page.show("answers/marked_part", view, part="answers/marked_part")
        # The form that asked is replaced: the event that shows a notice needs a target that stays.
        notice = {"target": "#notices", "text": done}
        response.headers["HX-Trigger"] = json.dumps({"proctor-notice": notice})
        return response
    is_own = form.back.startswith(("/runs/", "/compare"))
    return page.go(form.back if is_own else f"/runs/{job_id}/results", Notice(done))
