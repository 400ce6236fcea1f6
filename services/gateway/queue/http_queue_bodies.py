"""The queue and its limits as they go out and come in over HTTP."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from services.gateway.http_text import Text
from services.gateway.runs.http_job_bodies import JobProgress, JobWait

_INT32_MAX = 2**31 - 1
_YEAR_SECONDS = 365 * 24 * 3600

Count = Annotated[int | None, Field(ge=1, le=_INT32_MAX)]
PriorityName = Literal["high", "normal", "low"]


class QueuedJob(BaseModel):
    job_id: str
    user: str
    model_name: str
    benchmark_suite: str
    project_id: int
    priority: str
    status: str
    created_at: datetime | None
    started_at: datetime | None
    deadline: datetime | None = Field(description="When it fails as timed out; null while it does not run")
    pool: str = Field(description="Of the workers that serve it")
    progress: JobProgress
    samples_per_second: float | None = Field(description="Over the last seconds; null until measured")
    eta_seconds: float | None = Field(description="Seconds to its end at that rate; null until measured")
    wait: JobWait | None = Field(description="Why it waits; null where it does not")


class QueueLoad(BaseModel):
    """Of an engine that runs in the worker itself."""

    running_requests: int = Field(description="Being generated")
    waiting_requests: int = Field(description="Held back by the engine")
    kv_cache_usage: float = Field(description="Share of the cache, 0 to 1")
    prefix_hit_rate: float | None = Field(description="Share of prompt tokens read from the cache")


class QueueWorker(BaseModel):
    worker_id: str
    pool: str
    provider: str
    engine: str
    condition: str = Field(description='"loading", "ready", "draining" or what is wrong')
    loaded_model: str = Field(description="Empty when none")
    in_flight: int = Field(description="Samples being asked now")
    concurrency: int = Field(description="Most samples asked at a time")
    seen_at: datetime | None
    load: QueueLoad | None = Field(description="Null where the engine runs elsewhere")
    cannot_load: dict[str, str] = Field(description="Model → the engine's own reason")


class Limits(BaseModel):
    """Limits of the whole system, as they hold now."""

    max_running_runs: int
    max_pending_runs_per_user: int
    max_requests_per_minute: int = Field(description="Of a user, over all doors")
    run_time_limit_seconds: float = Field(description="How long a run may be running in all")
    min_run_time_seconds: float = Field(
        description="How long a run keeps its place before an equally urgent one of another user may take it"
    )
    highest_priorities: dict[str, str] = Field(
        description='User → the highest priority to ask for; "*" is everybody who is not named'
    )


class LimitChanges(BaseModel):
    """What is left out stays as it is; null goes back to what the settings say."""

    # Strict: true is no 1.
    model_config = ConfigDict(extra="forbid", strict=True)

    max_running_runs: Count = None
    max_pending_runs_per_user: Count = None
    max_requests_per_minute: Count = None
    run_time_limit_seconds: float | None = Field(default=None, gt=0, le=_YEAR_SECONDS)
    min_run_time_seconds: float | None = Field(default=None, ge=0, le=_YEAR_SECONDS)
    highest_priorities: dict[Text, PriorityName] | None = Field(
        default=None, min_length=1, description='Replaces the whole list; {"*": "high"} lets everybody'
    )


class QueueUser(BaseModel):
    user: str
    running: int
    pending: int


class Queue(BaseModel):
    """As of one moment."""

    running: list[QueuedJob] = Field(description="In the order of their start")
    waiting: list[QueuedJob] = Field(description="In the order of their turn")
    waiting_total: int = Field(description="Also those behind the listed ones")
    paused: list[QueuedJob] = Field(description="The latest first")
    workers: list[QueueWorker] = Field(description="Live ones")
    limits: Limits
    users: list[QueueUser] = Field(description="Users with jobs that run or wait")
