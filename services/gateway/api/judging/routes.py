"""Judges of a run's answers: orders of judging runs, and those that there are with their figures."""

import asyncio
import uuid
from collections.abc import Sequence

from fastapi import APIRouter
from pydantic import BaseModel, Field

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import run_pb2, summary_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.priority import Priority, default_priority
from proctor.values.usage import TokenUsage
from proctor.wire.comparison_notes import compares
from proctor.wire.enums import number_of, word_of
from services.gateway.api.dataset_runs.requests import ModelName
from services.gateway.api.judging.panels import unless_archived
from services.gateway.api.runs.job import task_figures
from services.gateway.api.runs.labels import LabelsGiven
from services.gateway.api.runs.requests import (
    BaseUrlField,
    MaxCost,
    Params,
    ReuseAnswers,
    Rollouts,
    StreamAnswers,
)
from services.gateway.api.runs.routes import duration_text
from services.gateway.api.runs.schemas import FigureShown, JobStarted
from services.gateway.auth.identity import User
from services.gateway.auth.request_ids import RequestId
from services.gateway.backends.calls import Results, ResultsCalls, Scheduler, SchedulerCalls
from services.gateway.http.parameters import Count, JobId, Text
from services.gateway.http.paths import BENCHMARKING
from services.gateway.http.presentation import optional, present
from services.gateway.http.problem import problems
from services.gateway.http.project_names import OptionalProject

# The newest ones; a list of runs by benchmark has all.
_SHOWN = 20
_MAX_DOCUMENT_CHARACTERS = 32 * 1024

router = APIRouter(prefix=BENCHMARKING, tags=["judges"])


class JudgeRequest(LabelsGiven):
    """An order: a model judges the answers of a job that has ended."""

    model_id: ModelName = Field(
        description='The judge: "provider/name", or an alias from the pools file', examples=["vllm/starter"]
    )
    prompt: Text = Field(
        default="", max_length=64, description="An installed judge prompt", examples=["correctness"]
    )
    document: Text = Field(
        default="", max_length=_MAX_DOCUMENT_CHARACTERS, description="A judge prompt as YAML instead"
    )
    scale: Text = Field(
        default="",
        max_length=2000,
        description='"yes-no", "1-5" or "labels:good=1,fair=0.5,poor=0"; that of the prompt if unset',
    )
    against: uuid.UUID | None = Field(
        default=None,
        description="Compare each answer with that of this job to the same sample, in both orders",
    )
    against_target: bool = Field(
        default=False,
        description="Compare each answer with the target of its row, the golden answer, instead",
    )
    repetitions: Rollouts = Field(default=None, description="Verdicts on each answer")
    limit: Count = Field(default=None, description="First N answers")
    params: Params | None = None
    priority: Priority | None = Field(
        default=None, description=f"{default_priority(is_background=True)} if unset"
    )
    project_id: OptionalProject = Field(default=None, description="That of the judged job if unset")
    max_cost: MaxCost = None
    reuse_answers: ReuseAnswers = False
    stream_answers: StreamAnswers = False
    base_url: BaseUrlField = ""

    def to_order(self, judged: run_pb2.Run) -> run_pb2.RunOrder:
        return run_pb2.RunOrder(
            project_id=judged.order.project_id if self.project_id is None else self.project_id,
            model=self.model_id,
            base_url=self.base_url,
            judge=run_pb2.Judge(
                run_id=judged.run_id,
                prompt=self.prompt,
                document=self.document,
                scale=self.scale,
                against_run_id=str(self.against) if self.against else "",
                against_target=self.against_target,
            ),
            rollouts=self.repetitions,
            limit=self.limit,
            priority=number_of(self.priority),
            params=self.params.to_proto() if self.params else None,
            max_cost=self.max_cost,
            reuse_answers=self.reuse_answers,
            stream_answers=self.stream_answers,
        )


class CalibratedShown(BaseModel):
    """The figure of a judge, corrected by marks of people. Null means undefined."""

    samples: int = Field(description="Judged samples with a verdict")
    marks: int = Field(description="Those of them that people have annotated or marked")
    mean: float | None = Field(description="Null with fewer than 30 marks: the judge is uncalibrated")
    ci95: tuple[float, float] | None
    weight: float | None = Field(description="How much verdicts count: 0 where they say nothing of marks")
    error_rate: float | None = Field(description="Share of the marked samples that the judge has wrong")
    more_marks: int | None = Field(description="Halve the interval; null where marks alone cannot")
    advice: str


class JudgingRunShown(BaseModel):
    """A judge of a job. Its usage and cost are those of the verdicts alone."""

    job_id: str
    model_id: str
    prompt: str
    version: str
    scale: str
    repetitions: int
    status: str
    against: str | None = Field(description="The job whose answers these are compared with; null for none")
    against_target: bool = Field(description="Whether they are compared with the targets of their rows")
    figure: FigureShown | None = Field(
        description="Mean score of the verdicts as they are; of pairs the share of wins, ties half"
    )
    first_place: FigureShown | None = Field(
        description="Of pairs: the share of verdicts for the answer shown first; 0.5 without position bias"
    )
    calibrated: CalibratedShown | None = Field(
        description="Corrected by marks; null before there are verdicts, and of pairs"
    )
    verdicts: int
    unparsed_rate: float | None = Field(description="Share of the verdicts; they have no score")
    failed_rate: float | None = Field(description="Share of the verdicts asked for so far; never scored")
    usage: TokenUsage
    cost: float | None = Field(description="Cost of the verdicts; null without a price")
    currency: str


class JudgingRuns(BaseModel):
    """The newest judges of a job."""

    judged_by: list[JudgingRunShown]
    total: int


@router.post(
    "/judgements/{job_id}",
    responses=problems(400, 404, 409, 422, 429, 503),
    summary="Judge the answers of a job by a model",
)
async def judge(
    scheduler: SchedulerCalls, user: User, job_id: JobId, body: JudgeRequest, request_id: RequestId
) -> JobStarted:
    judged = await scheduler.run(job_id)
    response = await scheduler.runs.SubmitRun(
        scheduler_pb2.SubmitRunRequest(
            order=body.to_order(judged), user=user, request_id=request_id, labels=body.labels()
        )
    )
    return present(
        JobStarted,
        response,
        response.run.price,
        job_id=response.run.run_id,
        message=f"Judging started: {response.run.dataset_name}",
        estimated_duration=duration_text(optional(response, "estimated_seconds")),
    )


@router.get("/judgements/{job_id}", responses=problems(404, 422, 503), summary="The judges of a job")
async def judgements(scheduler: SchedulerCalls, results: ResultsCalls, job_id: JobId) -> JudgingRuns:
    await scheduler.run(job_id)
    judged_by, total = await judging_runs(scheduler, results, job_id)
    return JudgingRuns(judged_by=list(judged_by), total=total)


async def judging_runs(
    scheduler: Scheduler, results: Results, run_id: str
) -> tuple[Sequence[JudgingRunShown], int]:
    """The newest judging runs of a run, and how many there are: the judged run is their benchmark."""
    request = scheduler_pb2.ListRunsRequest(benchmark=run_id, page_size=_SHOWN)
    found = await scheduler.runs.ListRuns(request)
    # A suite may be called as the run is.
    runs = [run for run in found.runs if run.order.judge.run_id == run_id]
    summaries = await asyncio.gather(*(results.summary(run.run_id) for run in runs))
    # One at a time: each reads all verdicts of its run.
    calibrated = [await _calibrated(results, *each) for each in zip(runs, summaries, strict=True)]
    shown = [judging_run_shown(*each) for each in zip(runs, summaries, calibrated, strict=True)]
    return shown, found.total


async def _calibrated(
    results: Results, run: run_pb2.Run, summary: summary_pb2.RunSummary
) -> CalibratedShown | None:
    if not summary.answered or compares(run.order.judge):
        return None
    request = answer_pb2.CalibrateJudgeRequest(run_id=summary.run_id)
    found = await unless_archived(results.answers.CalibrateJudge(request))
    if found is None:
        return None
    figure = found.figure
    ends = (figure.ci_low, figure.ci_high) if figure.HasField("ci_low") else None
    return present(CalibratedShown, figure, ci95=ends)


def judging_run_shown(
    run: run_pb2.Run, summary: summary_pb2.RunSummary, calibrated: CalibratedShown | None
) -> JudgingRunShown:
    """`summary` is empty before the run is planned."""
    figures = [figure for task in summary.tasks for figure in task_figures(task).values()]
    recorded = summary.answered + summary.failed
    return present(
        JudgingRunShown,
        summary,
        run.order.judge,
        job_id=run.run_id,
        model_id=run.order.model,
        repetitions=max(1, run.order.rollouts),
        status=word_of(run_pb2.RunState, run.state),
        against=run.order.judge.against_run_id or None,
        figure=figures[0] if figures else None,
        first_place=figures[1] if len(figures) > 1 else None,
        calibrated=calibrated,
        verdicts=summary.answered,
        unparsed_rate=summary.unparsed / summary.answered if summary.answered else None,
        failed_rate=summary.failed / recorded if recorded else None,
        cost=optional(summary, "cost"),
        currency=summary.price.currency,
    )
