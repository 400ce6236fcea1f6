"""People annotate the answers of a job on the scale of its judges: the queue, and how far they agree."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from proctor.v1 import annotation_service_pb2 as annotation_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.values.plain import INT32_MAX
from proctor.wire.enums import word_of
from services.gateway.api.dataset_runs.rows import given_answer
from services.gateway.auth.identity import User
from services.gateway.backends.calls import Results, ResultsCalls
from services.gateway.http.parameters import JSON_INT_MAX, Cursor, JobId, RequestBody, Text
from services.gateway.http.paths import BENCHMARKING
from services.gateway.http.presentation import Done, optional, present
from services.gateway.http.problem import problems

PageSize = Annotated[int, Query(ge=1, le=500)]
Raters = Annotated[
    int, Query(ge=1, le=10, description="People who annotate each answer; what so many have is left out")
]

router = APIRouter(prefix=BENCHMARKING, tags=["judges"])


class LabelShown(BaseModel):
    label: str
    score: float = Field(description="0 to 1")


class QuestionShown(BaseModel):
    """What is asked of the answers."""

    job_id: str = Field(description="The job whose answers they are")
    name: str = Field(description="Name of the judge prompt")
    labels: list[LabelShown] = Field(description="The scale, in its order")


class QueuedAnswer(BaseModel):
    """The answer that the caller annotates next. Its fields are null where none is left."""

    question: QuestionShown
    sample: int | None = Field(description="Number of the sample")
    rollout: int | None
    prompt: str | None
    target: str | None
    answer: str | None = Field(description="Without reasoning")


class AnnotationGiven(RequestBody):
    """What the caller says of an answer, in place of what the caller said before."""

    sample: int = Field(ge=0, le=JSON_INT_MAX)
    rollout: int = Field(default=0, ge=0, le=INT32_MAX)
    label: Text = Field(default="", max_length=50, description="A label of the scale; empty: cannot tell")
    comment: Text = Field(default="", max_length=2000)


class AnnotationShown(BaseModel):
    sample: int
    rollout: int
    user: str
    label: str = Field(description="Empty: could not tell")
    score: float | None
    comment: str
    annotated_at: datetime


class AnnotationPage(BaseModel):
    annotations: list[AnnotationShown] = Field(description="By sample, rollout and user")
    next_cursor: str | None


class AgreementShown(BaseModel):
    """How far the annotations are, and how far people agree. Null means undefined."""

    question: QuestionShown
    answers: int = Field(description="Answers of the job, without failures")
    annotated: int
    annotated_twice: int = Field(description="By two people or more")
    own: int = Field(description="By the caller")
    drawn: int = Field(
        description="That calibrate judges: before the first one in the random order that is not"
    )
    raters: int = Field(description="People who have given a label")
    measure: str | None = Field(description="cohens_kappa of two people, krippendorffs_alpha of more")
    units: int = Field(description="Answers with labels of two people or more")
    value: float | None = Field(description="1: always agree, 0: as by chance")
    ci95: tuple[float, float] | None


@router.get(
    "/annotations/{job_id}/next",
    responses=problems(400, 404, 409, 422, 503),
    summary="The answer that the caller annotates next, in an order that is random and the same for all",
)
async def next_answer(
    results: ResultsCalls,
    user: User,
    job_id: JobId,
    *,
    raters: Raters = 2,
    disagreement_first: Annotated[
        bool, Query(description="What the judges disagree about most comes first")
    ] = False,
) -> QueuedAnswer:
    request = annotation_pb2.FindUnannotatedRequest(
        run_id=job_id, user=user, raters=raters, is_disagreement_first=disagreement_first
    )
    return await queued_answer(results, request)


@router.post(
    "/annotations/{job_id}",
    responses=problems(400, 404, 409, 422, 503),
    summary="Annotate an answer of a job",
)
async def annotate(results: ResultsCalls, user: User, job_id: JobId, said: AnnotationGiven) -> Done:
    request = annotation_pb2.AnnotateAnswerRequest(run_id=job_id, user=user, **said.model_dump())
    await results.annotations.AnnotateAnswer(request)
    return Done(message=f"Sample {said.sample}, rollout {said.rollout} is annotated.")


@router.get(
    "/annotations/{job_id}",
    responses=problems(400, 404, 409, 422, 503),
    summary="Own annotations, and those of the answers that two people have annotated",
)
async def list_annotations(
    results: ResultsCalls, user: User, job_id: JobId, limit: PageSize = 100, cursor: Cursor = ""
) -> AnnotationPage:
    request = annotation_pb2.ListAnnotationsRequest(
        run_id=job_id, user=user, page_size=limit, page_token=cursor
    )
    page = await results.annotations.ListAnnotations(request)
    shown = [present(AnnotationShown, one) for one in page.annotations]
    return AnnotationPage(annotations=shown, next_cursor=page.next_page_token or None)


@router.get(
    "/annotations/{job_id}/agreement",
    responses=problems(400, 404, 409, 422, 503),
    summary="How far the annotations of a job are, and how far people agree",
)
async def agreement(results: ResultsCalls, user: User, job_id: JobId) -> AgreementShown:
    return await agreement_shown(results, job_id, user)


async def agreement_shown(results: Results, run_id: str, user: str) -> AgreementShown:
    found = await results.annotations.GetAgreement(
        annotation_pb2.GetAgreementRequest(run_id=run_id, user=user)
    )
    ends = (found.ci_low, found.ci_high) if found.HasField("ci_low") else None
    measure = word_of(annotation_pb2.AgreementMeasure, found.measure) if found.measure else None
    return present(
        AgreementShown,
        found,
        question=question_shown(found.question),
        measure=measure,
        value=optional(found, "value"),
        ci95=ends,
    )


async def queued_answer(results: Results, request: annotation_pb2.FindUnannotatedRequest) -> QueuedAnswer:
    """The next answer beside what was asked."""
    found = await results.annotations.FindUnannotated(request)
    question = question_shown(found.question)
    empty = QueuedAnswer(question=question, sample=None, rollout=None, prompt=None, target=None, answer=None)
    if not found.HasField("sample"):
        return empty
    page = await results.recorded_outcomes(
        results_pb2.ListOutcomesRequest(
            run_id=question.job_id, first_sample=found.sample, first_rollout=found.rollout, page_size=1
        )
    )
    if not page.outcomes:  # deleted meanwhile
        return empty
    [recorded] = page.outcomes
    answer = given_answer(recorded.outcome)
    return QueuedAnswer(
        question=question,
        sample=found.sample,
        rollout=found.rollout,
        prompt=recorded.prompt,
        target=recorded.target,
        answer=(answer.text if answer else "") or recorded.prediction,
    )


def question_shown(question: annotation_pb2.AnnotationQuestion) -> QuestionShown:
    labels = [present(LabelShown, label) for label in question.labels]
    return QuestionShown(job_id=question.run_id, name=question.name, labels=labels)
