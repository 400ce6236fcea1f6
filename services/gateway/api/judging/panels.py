"""The judges of a job as a panel: one figure, their agreement, and where each of them leans."""

from collections.abc import Awaitable
from typing import TypeVar

from fastapi import APIRouter
from pydantic import BaseModel, Field

from proctor.v1 import annotation_service_pb2 as annotation_pb2
from services.common.errors import RemoteError
from services.gateway.api.judging.annotations import QuestionShown, question_shown
from services.gateway.backends.calls import Results, ResultsCalls
from services.gateway.http.parameters import JobId
from services.gateway.http.paths import BENCHMARKING
from services.gateway.http.presentation import optional, present
from services.gateway.http.problem import problems

T = TypeVar("T")

router = APIRouter(prefix=BENCHMARKING, tags=["judges"])


class LeanShown(BaseModel):
    """How much more a judge gives than a reference. Null means undefined."""

    answers: int = Field(description="With a verdict and a reference")
    value: float | None = Field(description="Of length for each doubling of an answer's characters")
    ci95: tuple[float, float] | None


class PanelJudgeShown(BaseModel):
    job_id: str
    model_id: str
    against: str = Field(
        description="The reference of `length`: people, where they have annotated 30; else judges"
    )
    length: LeanShown = Field(description="Lean towards long answers")
    own_family: LeanShown | None = Field(
        description="Against judges of other families; null unless the judged model is of its family"
    )


class PanelShown(BaseModel):
    """The judges that were asked one question. Null means undefined."""

    question: QuestionShown
    answers: int = Field(description="With a verdict of any judge")
    mean: float | None = Field(description="Of labels the majority counts, of grades the mean")
    ci95: tuple[float, float] | None
    spread: float | None = Field(description="Mean standard deviation between judges of an answer")
    alpha: float | None = Field(description="Krippendorff's alpha of the judges")
    judges: list[PanelJudgeShown]


@router.get(
    "/judgements/{job_id}/panel",
    responses=problems(400, 404, 409, 422, 503),
    summary="The judges of a job as one figure, with their agreement and leanings",
)
async def panel(results: ResultsCalls, job_id: JobId) -> PanelShown:
    return await panel_shown(results, job_id)


async def panel_shown(results: Results, run_id: str) -> PanelShown:
    """Of the judges that are asked what the judging run `run_id` is, or whether its answers are correct."""
    found = await results.annotations.GetPanel(annotation_pb2.GetPanelRequest(run_id=run_id))
    return present(
        PanelShown,
        found,
        question=question_shown(found.question),
        ci95=(found.ci_low, found.ci_high) if found.HasField("ci_low") else None,
        judges=[_judge(judge) for judge in found.judges],
    )


async def unless_archived(figure: Awaitable[T]) -> T | None:
    """None where it takes answers that are archived, and too many to be read there."""
    try:
        return await figure
    except RemoteError as error:
        if error.reason != "RUN_ARCHIVED":
            raise
        return None


def _judge(judge: annotation_pb2.PanelJudge) -> PanelJudgeShown:
    return PanelJudgeShown(
        job_id=judge.run_id,
        model_id=judge.model,
        against="people" if judge.is_against_people else "judges",
        length=_lean(judge.length),
        own_family=_lean(judge.own_family) if judge.HasField("own_family") else None,
    )


def _lean(lean: annotation_pb2.Lean) -> LeanShown:
    ends = (lean.ci_low, lean.ci_high) if lean.HasField("ci_low") else None
    return present(LeanShown, lean, value=optional(lean, "value"), ci95=ends)
