"""The answers of a job with what its judges say of each of them."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from proctor.v1 import results_service_pb2 as results_pb2
from services.gateway.api.dataset_runs.rows import judged_fields
from services.gateway.api.dataset_runs.schemas import VerdictShown
from services.gateway.backends.calls import ResultsCalls, SchedulerCalls
from services.gateway.http.parameters import Cursor, JobId
from services.gateway.http.paths import BENCHMARKING
from services.gateway.http.presentation import present
from services.gateway.http.problem import problems

PageSize = Annotated[int, Query(ge=1, le=500, description="A page of large answers has fewer")]

router = APIRouter(prefix=BENCHMARKING, tags=["judges"])


class VerdictsOnAnswer(BaseModel):
    sample: int
    rollout: int
    task: str
    row_id: str = Field(description="Id of the row of a data set; else empty")
    is_golden: bool
    is_marked_wrong: bool
    disagreement: float | None = Field(
        description="How far judges of one question and people are apart, 0 to 1; null of fewer than two"
    )
    verdicts: list[VerdictShown]


class VerdictsPage(BaseModel):
    answers: list[VerdictsOnAnswer]
    next_cursor: str | None = Field(description="Null on the last page; a page may be short, even empty")


@router.get(
    "/judgements/{job_id}/verdicts",
    responses=problems(400, 404, 409, 422, 503),
    summary="The answers of a job with the verdicts of its judges on each of them",
)
async def list_verdicts(
    scheduler: SchedulerCalls,
    results: ResultsCalls,
    job_id: JobId,
    *,
    disagreement_first: Annotated[
        bool,
        Query(
            description="What judges of one question, or a judge and people, are furthest apart on comes "
            "first; answers of which fewer than two say something are left out"
        ),
    ] = False,
    limit: PageSize = 100,
    cursor: Cursor = "",
) -> VerdictsPage:
    # A job that does not exist has no page, not an empty one.
    await scheduler.run(job_id)
    request = results_pb2.ListOutcomesRequest(
        run_id=job_id, page_size=limit, page_token=cursor, includes_verdicts=True
    )
    if disagreement_first:
        request.sort, request.is_descending = results_pb2.OUTCOME_SORT_DISAGREEMENT, True
    page = await results.recorded_outcomes(request)
    answers = [
        present(VerdictsOnAnswer, recorded, recorded.outcome, **judged_fields(recorded))
        for recorded in page.outcomes
    ]
    return VerdictsPage(answers=answers, next_cursor=page.next_page_token or None)
