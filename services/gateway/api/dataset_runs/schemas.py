"""Runs over data sets as bodies."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends
from pydantic import BaseModel, Field, JsonValue

from proctor.v1 import run_pb2, summary_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.names.model_name import name_of
from proctor.values.run import STATE_WORDS, RunState
from proctor.values.usage import TokenUsage
from proctor.wire.enums import member_of, word_of
from services.common.errors import ErrorKind, RemoteError
from services.gateway.api.runs.job import (
    decision_shown,
    error_sentence,
    job_wait,
    ran_seconds,
    task_figures,
    timing_shown,
)
from services.gateway.api.runs.labels import LabelsListed, LabelsShown
from services.gateway.api.runs.repeat import repeating_body
from services.gateway.api.runs.routes import duration_text
from services.gateway.api.runs.schemas import DecisionShown, EstimateShown, FigureShown, JobWait, TimingShown
from services.gateway.backends.calls import Scheduler, SchedulerCalls
from services.gateway.http.api_errors import benchmark_id
from services.gateway.http.errors import DatasetRunNotFound
from services.gateway.http.parameters import BenchmarkRunId
from services.gateway.http.presentation import json_value, moment, optional, present
from services.gateway.http.project_names import ProjectName, project_name


class RowError(BaseModel):
    code: str = Field(description="Failure class")
    message: str


class DatasetRunIdentity(BaseModel):
    benchmark_id: str = Field(description='"bm_…"')
    model_id: str = Field(description='"provider/name"')
    model_name: str = Field(description="Without the provider")
    dataset_id: str
    dataset_name: str
    status: str = Field(description=STATE_WORDS)


class DatasetRunStarted(EstimateShown):
    benchmark_id: str = Field(description='"bm_…"')
    status: str
    model_id: str
    dataset_id: str
    dataset_name: str
    started_at: datetime = Field(description="When it was accepted")
    deadline: datetime | None = Field(description="When it fails as timed out; null without a deadline yet")


class VerdictShown(BaseModel):
    """What a judge says of an answer. Null means that there is none."""

    job_id: str = Field(description="The judging run; its answers have the verdict at sample and rollout")
    model_id: str
    prompt: str = Field(description="Name of the judge prompt")
    sample: int
    rollout: int
    status: str = Field(description="scored, unparsed or failed")
    verdict: str | None = Field(
        description='In words of the scale: "yes", "4 of 5", a label; of pairs "better", "worse" or "tie"'
    )
    score: float | None = Field(description="0 to 1")
    reason: str = Field(description="What it says before its verdict, or why there is none")
    agrees_with_people: bool | None = Field(
        description="Null unless people have settled it: by a mark, or by two annotations"
    )
    place: str | None = Field(description="Of pairs: where the answer was shown, first or second")


class AnswerShown(BaseModel):
    """The fields of every body about an answer."""

    sample: int = Field(description="Number of the sample; identifies the answer together with rollout")
    rollout: int
    status: str = Field(description="answered (not scored), scored, unparsed or failed")
    prediction: str = Field(description="What was read from the answer")
    error: RowError | None
    scores: dict[str, float]
    is_golden: bool
    is_marked_wrong: bool = Field(description="By a user; its scores stay as they are")
    total_seconds: float | None = Field(description="To the last token; null for failures and reused answers")


class JudgedAnswerShown(AnswerShown):
    """With what judges say of the answer."""

    verdicts: list[VerdictShown] = Field(description="Of the judges of the run, the newest of each kind")
    disagreement: float | None = Field(
        description="How far judges of one question and people are apart, 0 to 1; null of fewer than two"
    )


class DatasetRunMessage(BaseModel):
    benchmark_id: str
    message: str


class MetricShown(BaseModel):
    name: str
    options: JsonValue = Field(description="Null without options")


class DatasetRunListed(DatasetRunIdentity, LabelsListed):
    progress: int = Field(description="Percentage of finished rows, 0 to 100")
    completed: int
    total: int = Field(description="Rows times rollouts; 0 until planned")
    throughput: float = Field(
        description="Generated tokens per second: current while it runs, else over its whole time"
    )
    eta_seconds: float | None = Field(description="Seconds to its end; null until measured and after its end")
    eta_low_seconds: float | None = Field(description="The same at the highest speed observed")
    eta_high_seconds: float | None = Field(description="The same at the lowest speed observed")
    started_at: datetime = Field(description="When it was accepted")
    completed_at: datetime | None
    deadline: datetime | None = Field(
        description="When it fails as timed out; null without a deadline, and when it is finished"
    )
    current_step: str
    failed: int = Field(description="Failed rows; never scored")
    metrics: list[MetricShown] = Field(description="Empty: answers are not scored")
    project_id: int
    project_name: ProjectName
    user: str
    priority: str
    error: str | None = Field(description="Why it failed; null unless it did")
    wait: JobWait | None = Field(description="Why it waits; null unless it does")
    stopped_early: DecisionShown | None = Field(
        description="Its comparison with another run was decided; null unless that stopped it"
    )


class DatasetRunPage(BaseModel):
    benchmarks: list[DatasetRunListed]
    total: int = Field(description="Over all pages; 1001 where there are more than 1,000")
    next_cursor: str | None


class DatasetRunShown(DatasetRunListed, LabelsShown):
    """A run over a data set with its figures, partial while it runs."""

    total_time_seconds: float = Field(description="Total time that it was running")
    samples_per_second: float | None = Field(
        description="Current speed, and that of its whole time when it is finished; null until measured"
    )
    scores: dict[str, FigureShown] = Field(description="By metric; empty without metrics")
    answered: int
    unparsed: int = Field(description="Answers that could not be parsed")
    failures: dict[str, int] = Field(description="Failure class → count")
    usage: TokenUsage
    cost: float | None = Field(description="Cost of its tokens; null without a price")
    currency: str | None
    timing: TimingShown
    reused_answers: int
    order: dict[str, JsonValue] = Field(
        description="The order, as the body of a request that repeats it; without defaults"
    )


class RowResponse(BaseModel):
    status_code: int = 200
    body: dict[str, Any] = Field(description="Response body of the endpoint that the row is a request for")


class RowResult(JudgedAnswerShown):
    custom_id: str = Field(description='"custom_id" or "id" of the row; else its number')
    request: JsonValue = Field(
        description="Its messages and its own parameters, which override the run's; null for a plain prompt"
    )
    response: RowResponse | None = Field(description="Null for a failure")
    row: int = Field(description="From 0")
    prompt: str
    target: str


class DatasetRunResults(DatasetRunIdentity):
    total_time_seconds: float
    throughput: float
    results: list[RowResult] = Field(description="In the order of the data set")
    next_cursor: str | None = Field(description="Null on the last page; a page may be short, even empty")


async def get_dataset_run(scheduler: Scheduler, run_id: str) -> run_pb2.Run:
    """Raises `DatasetRunNotFound`, also for a run over a suite."""
    try:
        run = await scheduler.run(run_id)
    except RemoteError as error:
        if error.kind is ErrorKind.NOT_FOUND:
            raise DatasetRunNotFound(benchmark_id=benchmark_id(run_id)) from error
        raise
    if not run.order.dataset_id:
        raise DatasetRunNotFound(benchmark_id=benchmark_id(run_id))
    return run


async def _dataset_run(scheduler: SchedulerCalls, run_id: BenchmarkRunId) -> run_pb2.Run:
    return await get_dataset_run(scheduler, run_id)


# The run that the path names.
DatasetRun = Annotated[run_pb2.Run, Depends(_dataset_run)]


def dataset_run_started(response: scheduler_pb2.SubmitRunResponse) -> DatasetRunStarted:
    run = response.run
    return present(
        DatasetRunStarted,
        response,
        run,
        run.price,
        **identity_of(run),
        started_at=run.created_at.ToDatetime(UTC),
        estimated_duration=duration_text(optional(response, "estimated_seconds")),
    )


def dataset_run_listed(run: run_pb2.Run, now: datetime) -> DatasetRunListed:
    return DatasetRunListed.model_validate(_listed(run, now))


def dataset_run_shown(run: run_pb2.Run, summary: summary_pb2.RunSummary, now: datetime) -> DatasetRunShown:
    """`summary` is empty before the run is planned."""
    figures = [task_figures(task) for task in summary.tasks]
    return present(
        DatasetRunShown,
        summary,
        summary.price,
        run,
        run.progress,
        **_listed(run, now),
        total_time_seconds=round(ran_seconds(run, now), 3),
        # A run over a data set has one task.
        scores=figures[0] if figures else {},
        timing=timing_shown(summary.timing),
        note=run.labels.note,
        order=repeating_body(run),
    )


def identity_of(run: run_pb2.Run) -> dict[str, object]:
    """Fields that every body about the run begins with."""
    return {
        "benchmark_id": benchmark_id(run.run_id),
        "model_id": run.order.model,
        "model_name": name_of(run.order.model),
        "dataset_id": run.order.dataset_id,
        "dataset_name": run.dataset_name,
        "status": word_of(run_pb2.RunState, run.state),
    }


def throughput(run: run_pb2.Run, now: datetime) -> float:
    """Generated tokens per second: the current speed if it is measured, else over the whole time."""
    if run.state == run_pb2.RUN_STATE_RUNNING and run.progress.HasField("tokens_per_second"):
        return round(run.progress.tokens_per_second, 3)
    seconds = ran_seconds(run, now)
    return round(run.progress.usage.completion_tokens / seconds, 3) if seconds else 0.0


def _listed(run: run_pb2.Run, now: datetime) -> dict[str, object]:
    progress, state = run.progress, member_of(RunState, run.state)
    is_finished = state is not None and state.is_final
    return {
        **identity_of(run),
        "name": run.labels.name,
        "tags": [*run.labels.tags],
        "progress": 100 * progress.recorded // progress.total if progress.total else 0,
        "completed": progress.recorded,
        "total": progress.total,
        "throughput": throughput(run, now),
        "eta_seconds": None if is_finished else optional(progress, "eta_seconds"),
        "eta_low_seconds": None if is_finished else optional(progress, "eta_low_seconds"),
        "eta_high_seconds": None if is_finished else optional(progress, "eta_high_seconds"),
        "started_at": run.created_at.ToDatetime(UTC),
        "completed_at": moment(run.finished_at),
        "deadline": None if is_finished else moment(run.deadline),
        "current_step": progress.phase,
        "failed": sum(progress.failures.values()),
        "metrics": [
            {"name": each.name, "options": json_value(each.options_json)} for each in run.order.metrics
        ],
        "project_id": run.order.project_id,
        "project_name": project_name(run.order.project_id) or None,
        "user": run.user,
        "priority": word_of(run_pb2.Priority, run.order.priority),
        "error": error_sentence(run),
        "wait": job_wait(run),
        "stopped_early": decision_shown(run),
    }
