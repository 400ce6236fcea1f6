"""Marks answers as golden from a page: a form, and where a script sends it, the answer's mark afterwards."""

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import Response

from proctor.v1 import answer_service_pb2 as answer_pb2
from services.gateway.auth.identity import User
from services.gateway.backends.calls import ResultsCalls
from services.gateway.http.parameters import INT32_MAX, JSON_INT_MAX, JobId
from services.gateway.pages.answer_marks import GoldenView
from services.gateway.pages.page import Notice, PageOf

router = APIRouter(prefix="/runs", include_in_schema=False)


@router.post("/{job_id}/golden")
async def mark(  # noqa: PLR0913, PLR0917  # the fields of the form
    page: PageOf,
    results: ResultsCalls,
    user: User,
    job_id: JobId,
    sample: Annotated[int, Form(ge=0, le=JSON_INT_MAX)],
    rollout: Annotated[int, Form(ge=0, le=INT32_MAX)] = 0,
    golden: Annotated[bool, Form()] = False,  # noqa: FBT002  # a field of the form
    name: Annotated[str, Form(max_length=1)] = "",
    back: Annotated[str, Form(max_length=4096)] = "",
) -> Response:
    answer = answer_pb2.AnswerKey(sample=sample, rollout=rollout)
    request = answer_pb2.MarkAnswersRequest(run_id=job_id, answers=[answer], is_golden=golden, user=user)
    await results.answers.MarkAnswers(request)
    view = GoldenView(job_id, sample, rollout, is_golden=golden, name=name)
    if page.is_part:
        return page.show("answers/golden_part", view, part="answers/golden_part")
    notice = "The answer is golden." if golden else "The answer is golden no more."
    is_own = back.startswith(("/runs/", "/compare"))
    return page.go(back if is_own else f"/runs/{job_id}/results", Notice(notice))
