"""Bodies that go out over HTTP. Fields that say nothing (`error` of a run that did not fail) are left out."""

from datetime import datetime

from pydantic import BaseModel, Field


class JobStarted(BaseModel):
    job_id: str
    message: str
    estimated_duration: str = Field(description='Text such as "10-30 minutes"')
    estimated_seconds: float | None = Field(description="Null while nothing was measured to tell from")


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


class Figure(BaseModel):
    mean: float | None = Field(description="The figure itself")
    std: float | None = Field(
        description="Spread over rollouts where there are several, else the standard error"
    )
    stderr: float | None
    ci95: tuple[float, float] | None
    n: int


class JobWait(BaseModel):
    position: int = Field(description="1 is next")
    held_by: str = Field(description="The limit that holds it")
    estimated_seconds: float | None = Field(
        default=None, description="Seconds until its turn; only there where earlier runs tell"
    )


class JobResults(BaseModel):
    job_id: str
    status: str = Field(description="pending, running, completed, failed, cancelled")
    progress: JobProgress
    summary: JobSummary
    performance_data: dict[str, dict[str, dict[str, Figure]]] = Field(
        description="suite → task → metric → figure"
    )
    failures: dict[str, int] = Field(description="Class of machinery failure → count")
    unparsed: int = Field(description="Answers that could not be parsed")
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


class JobPage(BaseModel):
    results: list[JobListed]
    total: int = Field(description="Over all pages")
    next_cursor: str | None


class FieldProblem(BaseModel):
    field: str
    message: str


class Problem(BaseModel):
    """RFC 9457; `detail` is the sentence for people."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    reason: str
    retry_after: int | None = Field(default=None, description="Seconds; only with 429 and 503")
    errors: list[FieldProblem] | None = Field(default=None, description="Only for a malformed body")


class Liveness(BaseModel):
    status: str


class Readiness(BaseModel):
    status: str
    dependencies: dict[str, str]
