"""Marks answers as golden from a page: a form, and where a script sends it, the answer's mark afterwards."""

from typing import Annotated

from fastapi import APIRouter, Form
from pydantic import BaseModel, Field
from starlette.responses import Response

from proctor.v1 import answer_service_pb2 as answer_pb2
from services.gateway.auth.identity import User
from services.gateway.backends.calls import ResultsCalls
from services.gateway.http.parameters import INT32_MAX, JSON_INT_MAX, JobId
from services.gateway.pages.answer_marks import GoldenView
from services.gateway.pages.page import Notice, PageOf

router = APIRouter(prefix="/runs", include_in_schema=False)


class GoldenForm(BaseModel):
    """An answer, whether it is golden from now on, its name on the page, and the page to go back to."""

    sample: Annotated[int, Field(ge=0, le=JSON_INT_MAX)]
    rollout: Annotated[int, Field(ge=0, le=INT32_MAX)] = 0
    golden: bool = False
    name: Annotated[str, Field(max_length=1)] = ""
    back: Annotated[str, Field(max_length=4096)] = ""


@router.post("/{job_id}/golden")
async def mark(
    page: PageOf, results: ResultsCalls, user: User, job_id: JobId, form: Annotated[GoldenForm, Form()]
) -> Response:
    answer = answer_pb2.AnswerKey(sample=form.sample, rollout=form.rollout)
    request = answer_pb2.MarkAnswersRequest(run_id=job_id, answers=[answer], is_golden=form.golden, user=user)
    await results.answers.MarkAnswers(request)
    view = GoldenView(job_id, form.sample, form.rollout, is_golden=form.golden, name=form.name)
    if page.is_part:
        return page.show("answers/golden_part", view, part="answers/golden_part")
    notice = "The answer is golden." if form.golden else "The answer is golden no more."
    is_own = form.back.startswith(("/runs/", "/compare"))
    return page.go(form.back if is_own else f"/runs/{job_id}/results", Notice(notice))
