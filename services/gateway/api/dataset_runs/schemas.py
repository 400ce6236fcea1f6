"""Bodies of runs over data sets."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field, JsonValue

from services.gateway.api.runs.schemas import Estimate, Figure, JobUsage, JobWait, TimingBody


class RowError(BaseModel):
    code: str = Field(description="Failure class")
    message: str


class DatasetRunIdentity(BaseModel):
    benchmark_id: str = Field(description='"bm_…"')
    model_id: str = Field(description='"provider/name"')
    model_name: str = Field(description="Without the provider")
    dataset_id: str
    dataset_name: str
    status: str = Field(description="pending, running, paused, completed, failed, cancelled")


class DatasetRunStarted(Estimate):
    benchmark_id: str = Field(description='"bm_…"')
    status: str
    model_id: str
    dataset_id: str
    dataset_name: str
    started_at: datetime = Field(description="When it was accepted")
    deadline: datetime | None = Field(description="When it fails as timed out; null without a deadline yet")


class ShownAnswer(BaseModel):
    """What every body about an answer has."""

    sample: int = Field(description="Number of the sample; identifies the answer together with rollout")
    rollout: int
    status: str = Field(description="answered (not scored), scored, unparsed or failed")
    prediction: str = Field(description="The extracted answer")
    error: RowError | None
    scores: dict[str, float]
    is_golden: bool
    total_seconds: float | None = Field(description="To the last token; null for failures and reused answers")


class DatasetRunMessage(BaseModel):
    benchmark_id: str
    message: str


class MetricShown(BaseModel):
    name: str
    options: JsonValue = Field(description="Null without options")


class DatasetRunListed(DatasetRunIdentity):
    progress: int = Field(description="Percentage of finished rows, 0 to 100")
    completed: int
    total: int = Field(description="Rows times rollouts; 0 until planned")
    throughput: float = Field(
        description="Generated tokens per second: current while it runs, else over its whole time"
    )
    eta_seconds: float | None = Field(description="Seconds to its end; null until measured and after its end")
    eta_low_seconds: float | None = Field(description="The same at the highest rate observed")
    eta_high_seconds: float | None = Field(description="The same at the lowest rate observed")
    started_at: datetime = Field(description="When it was accepted")
    completed_at: datetime | None
    deadline: datetime | None = Field(
        description="When it fails as timed out; null without a deadline, and when it has ended"
    )
    current_step: str
    failed: int = Field(description="Failed rows; never scored")
    metrics: list[MetricShown] = Field(description="Empty: answers are not scored")
    project_id: int
    user: str
    priority: str
    error: str | None = Field(description="Why it failed; null unless it did")
    wait: JobWait | None = Field(description="Why it waits; null unless it does")


class DatasetRunPage(BaseModel):
    benchmarks: list[DatasetRunListed]
    total: int = Field(description="Over all pages")
    next_cursor: str | None


class DatasetRunShown(DatasetRunListed):
    """A run over a data set with its figures, partial while it runs."""

    total_time_seconds: float = Field(description="Total time that it was running")
    samples_per_second: float | None = Field(description="Current rate; null until measured")
    scores: dict[str, Figure] = Field(description="By metric; empty without metrics")
    answered: int
    unparsed: int = Field(description="Answers that could not be parsed")
    failures: dict[str, int] = Field(description="Failure class → count")
    usage: JobUsage
    cost: float | None = Field(description="Cost of its tokens; null without a price")
    currency: str | None
    timing: TimingBody
    reused_answers: int


class RowResponse(BaseModel):
    status_code: int = 200
    body: dict[str, Any] = Field(description="Response body of the endpoint that the row is a request for")


class RowResult(ShownAnswer):
    custom_id: str = Field(description='"custom_id" or "id" of the row; else its number')
    response: RowResponse | None = Field(description="Null for a failure")
    row: int = Field(description="From 0")
    prompt: str
    target: str


class DatasetRunResults(DatasetRunIdentity):
    total_time_seconds: float
    throughput: float
    results: list[RowResult] = Field(description="In the order of the data set")
    next_cursor: str | None = Field(description="Null on the last page; a page may be short, even empty")
