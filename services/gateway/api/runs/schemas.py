"""Bodies of runs: jobs, their progress and figures. Optional fields without a value are left out."""

from datetime import datetime

from pydantic import BaseModel, Field, JsonValue

from proctor.values.run import STATE_WORDS
from proctor.values.usage import TokenUsage
from services.gateway.api.changes import ChangeShown
from services.gateway.api.runs.contamination import ContaminationShown
from services.gateway.api.runs.labels import LabelsListed, LabelsShown

_UNPARSED_RATE = "Share of the answers; null without answers"
_FAILED_RATE = "Share of the recorded outcomes; null without any"


class PercentilesShown(BaseModel):
    n: int = Field(description="Answers that have it")
    mean: float
    std: float
    p50: float
    p90: float
    p95: float
    p99: float


class TimingShown(BaseModel):
    """Times of the answers that the run itself requested; percentiles by linear interpolation."""

    queue_seconds: PercentilesShown | None = Field(default=None, description="Time in the engine's queue")
    first_token_seconds: PercentilesShown | None = Field(
        default=None, description="Time to the first token; over HTTP only for streamed answers"
    )
    between_tokens_seconds: PercentilesShown | None = Field(
        default=None, description="Mean time between the tokens of an answer after its first"
    )
    total_seconds: PercentilesShown | None = Field(default=None, description="Time to the last token")
    tokens_per_second: PercentilesShown | None = Field(
        default=None, description="Generated tokens of an answer per second of its total time"
    )


class EstimateShown(BaseModel):
    """The expected duration and cost of a new run."""

    estimated_duration: str = Field(description='Text, for example "10-30 minutes"')
    estimated_seconds: float | None = Field(description="Null without measurements")
    estimated_cost: float | None = Field(description="Expected cost; null without price or history")
    currency: str | None = Field(description="Currency of the model's price; null without one")


class JobStarted(EstimateShown):
    job_id: str
    message: str


class JobProgress(BaseModel):
    completed: int
    total: int = Field(description="0 until planned")
    percent: float
    current_step: str


class JobSummary(BaseModel):
    total_evaluations: int = Field(description="Tasks evaluated")
    total_samples: int = Field(description="Samples answered")
    benchmarks_run: list[str] = Field(description="Names of the tasks evaluated")
    models_evaluated: int
    total_time_seconds: float
    scoring_method: dict[str, str] = Field(
        description="How choices of each task are scored; figures of different methods are not comparable"
    )
    stand_in: list[str] = Field(description="Tasks whose rows are not the official split")
    reused_answers: int = Field(description="Answers reused from earlier runs, without times or cost")
    gpu_seconds: float = Field(description="GPU time of the answers; 0 where a provider answers, or a CPU")


class FigureShown(BaseModel):
    mean: float | None = Field(description="The value of the metric")
    std: float | None = Field(
        description="Standard deviation over rollouts if there are several, else the standard error"
    )
    stderr: float | None
    ci95: tuple[float, float] | None
    n: int
    scoring_method: str = Field(
        default="", description="How choices are scored; figures of different methods are not comparable"
    )
    within_std: float | None = Field(
        default=None, description="Mean deviation of a sample's own scores; only with several rollouts"
    )


class TaskCountsShown(BaseModel):
    answered: int
    failed: int = Field(description="Failed samples; never scored")
    unparsed: int
    unparsed_rate: float | None = Field(description=_UNPARSED_RATE)
    failed_rate: float | None = Field(description=_FAILED_RATE)


class GroupFigures(BaseModel):
    tasks: list[str]
    missing_tasks: list[str] = Field(description="Tasks of the group that are not part of the run")
    figures: dict[str, FigureShown] = Field(description="By metric")


class JobWait(BaseModel):
    position: int = Field(description="1 is next")
    blocked_by: str = Field(description="The limit that blocks it")
    estimated_seconds: float | None = Field(
        default=None, description="Seconds until its expected start; absent without measurements"
    )
    estimated_low_seconds: float | None = Field(
        default=None, description="The same at the highest speed observed"
    )
    estimated_high_seconds: float | None = Field(
        default=None, description="The same at the lowest speed observed"
    )


class DecisionShown(BaseModel):
    """What stopped a job early. Differences are those of the first job minus its base, in shares of the range
    of the metric; `low` and `high` hold whenever they are looked at."""

    verdict: str = Field(description="Of the first job: better, worse or equivalent")
    difference: float | None = Field(default=None, description="Mean over the pairs")
    low: float
    high: float
    pairs: int = Field(description="Samples that both answered, the first ones of the random order")
    failed: int = Field(description="Samples that failed in one job; the interval allows any difference")
    alpha: float = Field(description="Chance of a wrong decision")
    margin_points: float | None = Field(default=None, description="Null: no jobs are equivalent")
    against_job_id: str = Field(description="The other job")
    is_base: bool = Field(description="This job is the base")
    sentence: str


class JobResults(LabelsShown):
    job_id: str
    status: str = Field(description=STATE_WORDS)
    progress: JobProgress
    summary: JobSummary
    performance_data: dict[str, dict[str, dict[str, FigureShown]]] = Field(
        description="suite → task → metric → figure"
    )
    groups: dict[str, GroupFigures] = Field(
        description="Groups of tasks; the last one is the benchmark itself"
    )
    headline: str | None = Field(
        default=None, description="Metric of its headline figure among those of its last group; null without"
    )
    tasks: dict[str, TaskCountsShown]
    failures: dict[str, int] = Field(description="Failure class → count")
    problems: list[str] = Field(default=[], description="What could not be computed, each with the reason")
    contamination: list[ContaminationShown] = Field(
        default=[], description="What corpora have of its rows; absent unless it was stored"
    )
    unparsed: int = Field(description="Answers that could not be parsed")
    unparsed_rate: float | None = Field(description=_UNPARSED_RATE)
    warnings: list[str] = Field(default=[], description="Sentences to read before the figures")
    failed_rate: float | None = Field(description=_FAILED_RATE)
    timing: TimingShown = Field(description="Distribution of its times")
    usage: TokenUsage
    cost: float | None = Field(default=None, description="Cost of its tokens; absent without a price")
    currency: str = Field(default="", description="Currency of the cost; absent without a price")
    completed_at: datetime | None
    error: str = Field(default="", description="Why it failed; absent unless it did")
    imported_from: str = Field(
        default="", description="Tool whose log it was imported from; absent for one that was ordered"
    )
    archive_state: str = Field(
        default="", description="archiving, archived or restoring; absent while its answers are in Postgres"
    )
    stopped_early: DecisionShown | None = Field(
        default=None, description="Its comparison with another job was decided; absent unless that stopped it"
    )
    wait: JobWait | None = Field(default=None, description="Why it waits; absent unless it does")
    changes: list[ChangeShown] = Field(
        default=[], description="Who cancelled, paused, resumed, retried or labelled it, latest first"
    )
    order: dict[str, JsonValue] = Field(
        default={}, description="The order, as the body of a request that repeats it; without defaults"
    )


class JobListed(LabelsListed):
    job_id: str
    status: str
    model_name: str = Field(description="As ordered, without the provider")
    provider: str
    benchmark_suite: str
    created_at: datetime | None
    completed_at: datetime | None
    imported_from: str = Field(
        default="", description="Tool whose log it was imported from; absent for one that was ordered"
    )
    archive_state: str = Field(
        default="", description="archiving, archived or restoring; absent while its answers are in Postgres"
    )
    wait: JobWait | None = Field(default=None, description="Why it waits; absent unless it does")
    project_name: str | None = Field(default=None, description="Absent unless its project is declared")


class JobPage(BaseModel):
    results: list[JobListed]
    total: int = Field(description="Over all pages; 1001 where there are more than 1,000")
    next_cursor: str | None
