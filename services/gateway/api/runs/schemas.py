"""How the times of a run's answers are spread, as it goes out over HTTP; what no answer tells is left out.
Jobs as they go out over HTTP. Fields that say nothing (`error` of one that did not fail) are left out.
"""

from datetime import datetime

from pydantic import BaseModel, Field

from proctor.v1 import summary_pb2


class Spread(BaseModel):
    n: int = Field(description="Answers that tell it")
    mean: float
    std: float
    p50: float
    p90: float
    p95: float
    p99: float


class TimingBody(BaseModel):
    """Of the answers that were asked for in the run itself; percentiles by linear interpolation."""

    queue_seconds: Spread | None = Field(default=None, description="From acceptance to the engine's start")
    first_token_seconds: Spread | None = Field(
        default=None, description="To the first token; over HTTP only of streamed answers"
    )
    between_tokens_seconds: Spread | None = Field(
        default=None, description="Mean between the tokens of an answer after its first"
    )
    total_seconds: Spread | None = Field(default=None, description="To the last token")
    tokens_per_second: Spread | None = Field(
        default=None, description="Generated tokens of an answer by its total time"
    )


def timing_body(timing: summary_pb2.TimingSummary) -> TimingBody:
    return TimingBody(
        queue_seconds=_spread(timing.queue) if timing.HasField("queue") else None,
        first_token_seconds=_spread(timing.first_token) if timing.HasField("first_token") else None,
        between_tokens_seconds=_spread(timing.between_tokens) if timing.HasField("between_tokens") else None,
        total_seconds=_spread(timing.total) if timing.HasField("total") else None,
        tokens_per_second=_spread(timing.tokens_per_second) if timing.HasField("tokens_per_second") else None,
    )


def _spread(told: summary_pb2.Percentiles) -> Spread:
    return Spread(
        n=told.n, mean=told.mean, std=told.std, p50=told.p50, p90=told.p90, p95=told.p95, p99=told.p99
    )


class JobStarted(BaseModel):
    job_id: str
    message: str
    estimated_duration: str = Field(description='Text such as "10-30 minutes"')
    estimated_seconds: float | None = Field(description="Null while nothing was measured to tell from")
    estimated_cost: float | None = Field(
        description="What its tokens will cost; null without a price or a run of the suite to tell from"
    )
    currency: str | None = Field(description="Of the model's price; null where it has none")


class JobMessage(BaseModel):
    message: str


class JobProgress(BaseModel):
    completed: int
    total: int = Field(description="0 until planned")
    percent: float
    current_step: str


class JobSummary(BaseModel):
    total_evaluations: int = Field(description="Tasks evaluated")
    total_samples: int = Field(description="Samples answered")
    benchmarks_run: list[str]
    models_evaluated: int
    total_time_seconds: float
    scoring: dict[str, str] = Field(
        description="How each task was scored; figures of two ways cannot be compared"
    )
    stand_in: list[str] = Field(description="Tasks whose rows are not the official split")
    reused_answers: int = Field(
        description="Answers taken from earlier runs: they have no times and cost nothing"
    )


class Figure(BaseModel):
    mean: float | None = Field(description="The figure itself")
    std: float | None = Field(
        description="Spread over rollouts where there are several, else the standard error"
    )
    stderr: float | None
    ci95: tuple[float, float] | None
    n: int
    scoring: str = Field(
        default="", description="How choices were scored, where there are some; two ways cannot be compared"
    )
    within_std: float | None = Field(
        default=None, description="Mean spread of a sample's own scores; only with several rollouts"
    )


class TaskCounts(BaseModel):
    answered: int
    failed: int = Field(description="Samples the machinery failed on; never scored")
    unparsed: int
    unparsed_rate: float | None = Field(description="Of the answers; null where there are none")
    failed_rate: float | None = Field(description="Of the samples that came to an end; null where none did")


class GroupFigures(BaseModel):
    tasks: list[str]
    missing_tasks: list[str] = Field(description="Tasks of the group that were not part of the run")
    figures: dict[str, Figure] = Field(description="By metric")


class JobWait(BaseModel):
    position: int = Field(description="1 is next")
    blocked_by: str = Field(description="The limit that holds it")
    estimated_seconds: float | None = Field(
        default=None, description="Seconds until its turn; only there where what runs and earlier runs tell"
    )
    estimated_low_seconds: float | None = Field(
        default=None, description="The same if all goes as fast as it ever did"
    )
    estimated_high_seconds: float | None = Field(
        default=None, description="The same if all goes as slowly as it ever did"
    )


class JobUsage(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = Field(description="Of the prompt tokens, those from the provider's cache")
    reasoning_tokens: int = Field(description="Of the completion tokens, those of hidden reasoning")


class JobResults(BaseModel):
    job_id: str
    status: str = Field(description="pending, running, completed, failed, cancelled")
    progress: JobProgress
    summary: JobSummary
    performance_data: dict[str, dict[str, dict[str, Figure]]] = Field(
        description="suite → task → metric → figure"
    )
    groups: dict[str, GroupFigures] = Field(
        description="Tasks summed up together; the last one is the suite itself"
    )
    tasks: dict[str, TaskCounts]
    failures: dict[str, int] = Field(description="Class of machinery failure → count")
    unparsed: int = Field(description="Answers that could not be parsed")
    unparsed_rate: float | None = Field(description="Of the answers; null where there are none")
    failed_rate: float | None = Field(description="Of the samples that came to an end; null where none did")
    timing: TimingBody = Field(description="How the times of its answers are spread")
    usage: JobUsage
    cost: float | None = Field(
        default=None, description="Of the tokens; only there where the model has a price"
    )
    currency: str = Field(default="", description="Of the cost; only there with one")
    completed_at: datetime | None
    error: str = Field(default="", description="Why it failed; only there when it did")
    wait: JobWait | None = Field(default=None, description="Why it waits; only there while it does")


class JobListed(BaseModel):
    job_id: str
    status: str
    model_name: str
    benchmark_suite: str
    created_at: datetime | None
    completed_at: datetime | None
    wait: JobWait | None = Field(default=None, description="Why it waits; only there while it does")


class JobPage(BaseModel):
    results: list[JobListed]
    total: int = Field(description="Over all pages")
    next_cursor: str | None
