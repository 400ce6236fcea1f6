"""Runs over data sets as they go out over HTTP."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field, JsonValue

from services.gateway.api.runs.schemas import Figure, JobUsage, JobWait, TimingBody


class DatasetRunStarted(BaseModel):
    benchmark_id: str = Field(description='"bm_…"')
    status: str
    started_at: datetime = Field(description="When it was accepted")
    model_id: str
    dataset_id: str
    dataset_name: str
    deadline: datetime | None = Field(
        description="When it fails as timed out; null while it waits without a completion window"
    )
    estimated_duration: str = Field(description='Text such as "10-30 minutes"')
    estimated_seconds: float | None = Field(description="Null while nothing was measured to tell from")
    estimated_cost: float | None = Field(description="Null without a price, or a run to tell from")
    currency: str | None = Field(description="Of the model's price; null where it has none")


class DatasetRunMessage(BaseModel):
    benchmark_id: str
    message: str


class MetricShown(BaseModel):
    name: str
    options: JsonValue = Field(description="Null where there are none")


class DatasetRunListed(BaseModel):
    benchmark_id: str = Field(description='"bm_…"')
    model_id: str = Field(description='"provider/name"')
    model_name: str = Field(description="Without the provider")
    dataset_id: str
    dataset_name: str
    status: str = Field(description="pending, running, paused, completed, failed, cancelled")
    progress: int = Field(description="Per cent of the rows that came to an end, 0 to 100")
    completed: int
    total: int = Field(description="Rows times rollouts; 0 until planned")
    throughput: float = Field(
        description="Generated tokens per second: over the last seconds while it runs, else over its time"
    )
    eta_seconds: float | None = Field(description="Until its end; null until measured, and when it has ended")
    eta_low_seconds: float | None = Field(description="The same if all goes as fast as at its best")
    eta_high_seconds: float | None = Field(description="The same if all goes as slowly as at its worst")
    started_at: datetime = Field(description="When it was accepted")
    completed_at: datetime | None
    deadline: datetime | None = Field(
        description="When it fails as timed out; null where it has ended, or waits without a window"
    )
    current_step: str
    failed: int = Field(description="Rows that the machinery failed on; never scored")
    metrics: list[MetricShown] = Field(description="None: answers are kept, not scored")
    project_id: int
    user: str
    priority: str
    error: str | None = Field(description="Why it failed; null where it did not")
    wait: JobWait | None = Field(description="Why it waits; null where it does not")


class DatasetRunPage(BaseModel):
    benchmarks: list[DatasetRunListed]
    total: int = Field(description="Over all pages")
    next_cursor: str | None


class DatasetRunShown(DatasetRunListed):
    """One of them, with its figures so far."""

    total_time_seconds: float = Field(description="For which it was running")
    samples_per_second: float | None = Field(description="Over the last seconds; null until measured")
    scores: dict[str, Figure] = Field(description="By metric; empty where it has none")
    answered: int
    unparsed: int = Field(description="Answers that could not be parsed")
    failures: dict[str, int] = Field(description="Class of machinery failure to count")
    usage: JobUsage
    cost: float | None = Field(description="Of the tokens; null where the model has no price")
    currency: str | None
    timing: TimingBody
    reused_answers: int


class RowResponse(BaseModel):
    status_code: int = 200
    body: dict[str, Any] = Field(description="As the endpoint answers that the row is a request of")


class RowError(BaseModel):
    code: str = Field(description="Class of the machinery failure")
    message: str


class RowResult(BaseModel):
    custom_id: str = Field(description='"custom_id" or "id" of the row; else its number')
    response: RowResponse | None = Field(description="Null where the machinery failed")
    error: RowError | None
    row: int = Field(description="From 0")
    sample: int = Field(description="Names the answer in the run, together with rollout")
    rollout: int
    status: str = Field(description="answered (not scored), scored, unparsed or failed")
    prompt: str
    target: str
    prediction: str = Field(description="What the answer was taken as")
    scores: dict[str, float]
    is_golden: bool
    total_seconds: float | None = Field(description="To the last token; null where it was not asked for here")


class DatasetRunResults(BaseModel):
    benchmark_id: str
    model_id: str
    model_name: str
    dataset_id: str
    dataset_name: str
    status: str
    total_time_seconds: float
    throughput: float
    results: list[RowResult] = Field(description="In the order of the data set")
    next_cursor: str | None = Field(description="Null on the last page; a page may be short, even empty")
