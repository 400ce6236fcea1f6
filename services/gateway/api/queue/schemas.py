"""The queue and its limits as they go out and come in over HTTP.
The queue on its way out and changes of limits on their way in, between the contracts and HTTP.
"""

from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from proctor.v1 import model_pb2, run_pb2, scheduler_service_pb2
from proctor.v1 import queue_service_pb2 as queue_pb2
from services.gateway.api.runs.job import job_progress, job_wait
from services.gateway.api.runs.schemas import JobProgress, JobWait
from services.gateway.http.fields import Text
from services.gateway.http.presentation import PRIORITIES, board_of, moment, priority_word, state_word

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


def shown_queue(queue: queue_pb2.GetQueueResponse) -> Queue:
    return Queue(
        running=[_job(run) for run in queue.running],
        waiting=[_job(run) for run in queue.waiting],
        waiting_total=queue.waiting_total,
        paused=[_job(run) for run in queue.paused],
        workers=[_worker(worker) for worker in queue.workers],
        limits=shown_limits(queue.limits),
        users=[QueueUser(user=each.user, running=each.running, pending=each.pending) for each in queue.users],
    )


def shown_limits(limits: queue_pb2.QueueLimits) -> Limits:
    return Limits(
        max_running_runs=limits.max_running_runs,
        max_pending_runs_per_user=limits.max_pending_runs_per_user,
        max_requests_per_minute=limits.max_requests_per_minute,
        run_time_limit_seconds=limits.run_time_limit.ToTimedelta().total_seconds(),
        min_run_time_seconds=limits.min_run_time.ToTimedelta().total_seconds(),
        highest_priorities={each.user: priority_word(each.highest) for each in limits.priorities},
    )


# Where the contract calls a limit otherwise.
_CONTRACT_NAMES = {
    "run_time_limit_seconds": "run_time_limit",
    "min_run_time_seconds": "min_run_time",
    "highest_priorities": "priorities",
}


def wanted_limits(changes: LimitChanges) -> queue_pb2.SetLimitsRequest:
    nulls = [name for name in sorted(changes.model_fields_set) if getattr(changes, name) is None]
    reset = [_CONTRACT_NAMES.get(name, name) for name in nulls]
    return queue_pb2.SetLimitsRequest(limits=_changed_limits(changes), reset=reset)


def _changed_limits(changes: LimitChanges) -> queue_pb2.QueueLimits:
    wanted = queue_pb2.QueueLimits(
        max_running_runs=changes.max_running_runs,
        max_pending_runs_per_user=changes.max_pending_runs_per_user,
        max_requests_per_minute=changes.max_requests_per_minute,
        priorities=[
            queue_pb2.UserPriority(user=user, highest=PRIORITIES[name])
            for user, name in (changes.highest_priorities or {}).items()
        ],
    )
    if changes.run_time_limit_seconds is not None:
        wanted.run_time_limit.FromTimedelta(timedelta(seconds=changes.run_time_limit_seconds))
    if changes.min_run_time_seconds is not None:
        wanted.min_run_time.FromTimedelta(timedelta(seconds=changes.min_run_time_seconds))
    return wanted


def _job(run: run_pb2.Run) -> QueuedJob:
    progress = run.progress
    return QueuedJob(
        job_id=run.run_id,
        user=run.user,
        model_name=run.order.model,
        benchmark_suite=board_of(run.order),
        project_id=run.order.project_id,
        priority=priority_word(run.order.priority),
        status=state_word(run.state),
        created_at=moment(run.created_at),
        started_at=moment(run.started_at),
        deadline=moment(run.deadline),
        pool=run.pool,
        progress=job_progress(progress),
        samples_per_second=progress.samples_per_second if progress.HasField("samples_per_second") else None,
        eta_seconds=progress.eta_seconds if progress.HasField("eta_seconds") else None,
        wait=job_wait(run),
    )


def _worker(worker: scheduler_service_pb2.WorkerInfo) -> QueueWorker:
    return QueueWorker(
        worker_id=worker.worker_id,
        pool=worker.pool,
        provider=worker.provider,
        engine=worker.engine,
        condition=worker.condition,
        loaded_model=worker.loaded_model,
        in_flight=worker.in_flight,
        concurrency=worker.concurrency,
        seen_at=moment(worker.seen_at),
        load=_load(worker.load) if worker.HasField("load") else None,
        cannot_load=dict(worker.cannot_load),
    )


def _load(load: model_pb2.EngineLoad) -> QueueLoad:
    queries = load.prefix_cache_queries
    return QueueLoad(
        running_requests=load.running_requests,
        waiting_requests=load.waiting_requests,
        kv_cache_usage=load.kv_cache_usage,
        prefix_hit_rate=load.prefix_cache_hits / queries if queries else None,
    )
