"""Marks answers as golden or as wrong from a page: a form, and for a script the answer's marks afterwards."""

import json
from typing import Annotated, Literal

from fastapi import APIRouter, Form
from pydantic import BaseModel, Field
from starlette.responses import Response

from proctor.v1 import answer_service_pb2 as answer_pb2
from services.gateway.auth.identity import User
from services.gateway.backends.calls import ResultsCalls
from services.gateway.http.parameters import INT32_MAX, JSON_INT_MAX, JobId
from services.gateway.pages.answer_marks import GOLDEN, WRONG, MarkView
from services.gateway.pages.page import Notice, PageOf

_DONE = {
    GOLDEN: "The answer is marked as golden.",
    WRONG: "The answer is marked as wrong. Its score stays as it is.",
    "": "The answer has no mark any more.",
}

router = APIRouter(prefix="/runs", include_in_schema=False)


class MarkForm(BaseModel):
    """An answer, its mark from now on ("" for none), its name on the page, and the page to go back to."""

    sample: Annotated[int, Field(ge=0, le=JSON_INT_MAX)]
    rollout: Annotated[int, Field(ge=0, le=INT32_MAX)] = 0
    mark: Literal["golden", "wrong", ""] = ""
    name: Annotated[str, Field(max_length=1)] = ""
    back: Annotated[str, Field(max_length=4096)] = ""


@router.post("/{job_id}/marks")
async def change_mark(
    page: PageOf, results: ResultsCalls, user: User, job_id: JobId, form: Annotated[MarkForm, Form()]
) -> Response:
    request = answer_pb2.MarkAnswersRequest(
        run_id=job_id,
        answers=[answer_pb2.AnswerKey(sample=form.sample, rollout=form.rollout)],
        is_golden=form.mark == GOLDEN,
        is_wrong=form.mark == WRONG,
        user=user,
    )
    await results.answers.MarkAnswers(request)
    if page.is_part:
        view = MarkView(job_id, form.sample, form.rollout, form.mark, form.name)
        response = page.show("answers/marked_part", view, part="answers/marked_part")
        # The form that asked is replaced: the event that shows a notice needs a target that stays.
        notice = {"target": "#notices", "text": _DONE[form.mark]}
        response.headers["HX-Trigger"] = json.dumps({"proctor-notice": notice})
        return response
    is_own = form.back.startswith(("/runs/", "/compare"))
    return page.go(form.back if is_own else f"/runs/{job_id}/results", Notice(_DONE[form.mark]))
