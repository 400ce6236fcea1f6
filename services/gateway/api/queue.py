"""The run queue, and the limits of the whole system."""

from datetime import datetime, timedelta
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query
from google.protobuf.duration_pb2 import Duration
from pydantic import BaseModel, Field

from proctor.v1 import model_pb2, run_pb2
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.priority import Priority
from proctor.values.run import LIMIT_BOUNDS, MAX_TIME_LIMIT_SECONDS
from proctor.wire.enums import number_of, word_of
from proctor.wire.rollout_orders import answering_model
from services.gateway.api.changes import ChangeShown, change_shown
from services.gateway.api.models import provider_and_name
from services.gateway.api.runs.job import job_progress, job_wait
from services.gateway.api.runs.labels import LabelsListed
from services.gateway.api.runs.schemas import JobProgress, JobWait
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.parameters import Count, Keywords, RequestBody, Text
from services.gateway.http.paths import QUEUE
from services.gateway.http.presentation import benchmark_of, present, state_of
from services.gateway.http.problem import problems
from services.gateway.http.project_names import ProjectName

J = TypeVar("J", bound="QueuedJob")
W = TypeVar("W", bound="QueueWorker")

# Durations of a contract are rounded to this.
_MICROSECOND = 1e-6
# REST names of fields of QueueLimits, where they differ.
_CONTRACT_NAMES = {
    "run_time_limit_seconds": "run_time_limit",
    "min_run_time_seconds": "min_run_time",
}

MaxJobs = Annotated[int, Query(ge=1, le=500, description="Maximum number of pending and of paused jobs")]

router = APIRouter(prefix=QUEUE, tags=["queue"])


class QueuedJob(LabelsListed):
    job_id: str
    user: str
    model_name: str = Field(description="As ordered, without the provider")
    provider: str
    benchmark_suite: str
    project_id: int
    project_name: ProjectName
    priority: str
    status: str
    created_at: datetime | None
    started_at: datetime | None
    deadline: datetime | None = Field(description="When it fails as timed out; null while it does not run")
    pool: str = Field(description="Pool whose workers execute its shards")
    progress: JobProgress
    samples_per_second: float | None = Field(description="Current speed; null until measured")
    eta_seconds: float | None = Field(description="Seconds to its end at that speed; null until measured")
    wait: JobWait | None = Field(description="Why it waits; null unless it does")


class QueueLoad(BaseModel):
    """Load of an engine inside the worker."""

    running_requests: int = Field(description="Requests being generated")
    waiting_requests: int = Field(description="Requests queued in the engine")
    kv_cache_usage: float = Field(description="Share of the cache, 0 to 1")
    prefix_hit_rate: float | None = Field(description="Share of prompt tokens read from the cache")


class QueueWorker(BaseModel):
    worker_id: str
    pool: str
    provider: str
    engine: str
    state: str = Field(
        description='"loading", "ready", "draining" or "not loaded"; a note may follow, after "; "'
    )
    loaded_model: str = Field(description="Empty when none")
    samples_in_flight: int = Field(description="Samples that the engine works on")
    concurrency: int = Field(description="Maximum number of samples in flight")
    seen_at: datetime | None
    load: QueueLoad | None = Field(description="Null when the engine is remote")
    cannot_load: dict[str, str] = Field(description="Model → why the engine cannot load it")


class Limits(BaseModel):
    """Current limits of the whole system."""

    max_running_runs: int
    max_pending_runs_per_user: int = Field(description="Pending and paused runs of a user")
    max_requests_per_minute: int = Field(
        description="Orders, uploads and changes of a user, over all APIs; reads have a limit of their own"
    )
    run_time_limit_seconds: float = Field(description="Total time that a run may be running")
    min_run_time_seconds: float = Field(
        description="Time that a run keeps its slot before a run of equal priority may preempt it; "
        "less than 5 s counts as 5 s"
    )
    highest_priorities: dict[str, str] = Field(
        description='User → the highest priority of its orders; "*" stands for all other users'
    )
    max_stored_bytes_per_user: int = Field(description="Bytes that a user may store")
    max_stored_files_per_user: int = Field(
        description="Data sets, files, batch outputs, versions of suites, sets of tasks and runs with "
        "artifacts of a user"
    )
    max_stored_rows_per_user: int = Field(description="Rows of the data sets and files of a user")
    max_stored_bytes_per_project: int = Field(
        description="Of data sets, files, batch outputs, suites and artifacts, as stored; 0 means no limit"
    )


class LimitsShown(Limits):
    last_change: ChangeShown | None = Field(description="Who changed them last; null if they never were")


def _at_most(name: str) -> Keywords:
    return Keywords({"maximum": LIMIT_BOUNDS[name][1]})


def _stored(name: str, description: str | None = None) -> Any:
    least, most = LIMIT_BOUNDS[name]
    return Field(default=None, ge=least, le=most, description=description)


class LimitsPatch(RequestBody):
    """Absent limits stay unchanged; null resets a limit to the settings."""

    # The greatest counts are described here, and refused by the scheduler.
    max_running_runs: Annotated[Count, _at_most("max_running_runs")] = None
    max_pending_runs_per_user: Annotated[Count, _at_most("max_pending_runs_per_user")] = None
    max_requests_per_minute: Annotated[Count, _at_most("max_requests_per_minute")] = None
    run_time_limit_seconds: float | None = Field(default=None, ge=_MICROSECOND, le=MAX_TIME_LIMIT_SECONDS)
    min_run_time_seconds: float | None = Field(default=None, ge=0, le=MAX_TIME_LIMIT_SECONDS)
    highest_priorities: Annotated[dict[Text, Priority] | None, Keywords({"maxProperties": 1000})] = Field(
        default=None, min_length=1, description='Replaces the whole list; {"*": "high"} allows all priorities'
    )
    max_stored_bytes_per_user: int | None = _stored("max_stored_bytes_per_user")
    max_stored_files_per_user: int | None = _stored("max_stored_files_per_user")
    max_stored_rows_per_user: int | None = _stored("max_stored_rows_per_user")
    max_stored_bytes_per_project: int | None = _stored("max_stored_bytes_per_project", "0 means no limit")

    def to_proto(self) -> queue_pb2.SetLimitsRequest:
        limits = queue_pb2.QueueLimits(
            run_time_limit=_duration(self.run_time_limit_seconds),
            min_run_time=_duration(self.min_run_time_seconds),
            highest_priorities=[
                queue_pb2.UserPriority(user=user, highest=number_of(priority))
                for user, priority in (self.highest_priorities or {}).items()
            ],
            **{name: getattr(self, name) for name in LIMIT_BOUNDS},
        )
        nulls = [name for name in sorted(self.model_fields_set) if getattr(self, name) is None]
        return queue_pb2.SetLimitsRequest(
            limits=limits, reset=[_CONTRACT_NAMES.get(name, name) for name in nulls]
        )


class QueueUser(BaseModel):
    user: str
    running: int
    pending: int


class ProviderRate(BaseModel):
    """How fast one provider is asked with one API key, and what its headers allow."""

    pools: list[str] = Field(description="Pools whose workers ask it")
    requests_per_second: float = Field(description="Accepted ones of all workers together")
    requests_waiting_for_quota: int = Field(description="Requests that wait in workers")
    rate_limited: int = Field(description="Requests that it answered with 429")
    allowed_requests_per_second: float | None = Field(description="Null where its headers name no limit")
    allowed_tokens_per_second: float | None = Field(description="Null where its headers name no limit")
    resume_at: datetime | None = Field(description="Until then no request is sent; else null")


class RefusedStream(BaseModel):
    """A stream or a bucket of NATS that cannot be used. Jobs that need it wait."""

    name: str
    reason: str = Field(description="Why NATS does not make it, or takes no messages for it")


class FullDisk(BaseModel):
    """A disk that fills up, and for whose room work waits. It goes on by itself."""

    name: str = Field(description='"the disk of Postgres", or that of a folder of the scheduler\'s machine')
    used_share: float = Field(description="0 to 1; a disk of more than 100 GiB counts as one of 100 GiB")
    reason: str = Field(description="How full it is, what waits, and until when")


class Queue(BaseModel):
    """A snapshot."""

    running: list[QueuedJob] = Field(description="Ordered by start")
    pending: list[QueuedJob] = Field(description="Ordered by expected start")
    pending_total: int = Field(description="Number of all pending jobs")
    paused: list[QueuedJob] = Field(description="Newest first")
    workers: list[QueueWorker] = Field(description="Live workers")
    limits: Limits
    users: list[QueueUser] = Field(description="Users with running or pending jobs")
    rates: list[ProviderRate] = Field(description="Providers that are asked now")
    refused_streams: list[RefusedStream] = Field(description="Streams of NATS that cannot be used")
    full_disks: list[FullDisk] = Field(description="Disks that fill up, the fullest first")


@router.get("", responses=problems(422, 503), summary="Running, pending and paused jobs")
async def show_queue(scheduler: SchedulerCalls, limit: MaxJobs = 100) -> Queue:
    queue = await scheduler.queue.GetQueue(queue_pb2.GetQueueRequest(page_size=limit))
    return present(
        Queue,
        queue,
        running=[queued_job(QueuedJob, run) for run in queue.running],
        pending=[queued_job(QueuedJob, run) for run in queue.pending],
        paused=[queued_job(QueuedJob, run) for run in queue.paused],
        workers=[queue_worker(QueueWorker, worker) for worker in queue.workers],
        limits=limits_of(queue.limits),
    )


@router.get("/limits", responses=problems(503), summary="The current limits")
async def show_limits(scheduler: SchedulerCalls) -> LimitsShown:
    shown = await scheduler.queue.GetLimits(queue_pb2.GetLimitsRequest())
    last_change = change_shown(shown.last_change) if shown.HasField("last_change") else None
    return LimitsShown(**limits_of(shown.limits).model_dump(), last_change=last_change)


@router.patch("/limits", responses=problems(422, 503), summary="Change limits immediately, without a restart")
async def change_limits(scheduler: SchedulerCalls, changes: LimitsPatch) -> Limits:
    return limits_of((await scheduler.queue.SetLimits(changes.to_proto())).limits)


def limits_of(limits: queue_pb2.QueueLimits) -> Limits:
    return present(
        Limits,
        limits,
        run_time_limit_seconds=limits.run_time_limit.ToTimedelta().total_seconds(),
        min_run_time_seconds=limits.min_run_time.ToTimedelta().total_seconds(),
        highest_priorities={
            each.user: word_of(run_pb2.Priority, each.highest) for each in limits.highest_priorities
        },
    )


def queued_job(body: type[J], run: run_pb2.Run, **given: object) -> J:
    """`given` are fields that only this body has."""
    return present(
        body,
        run,
        run.order,
        run.progress,
        run.labels,
        job_id=run.run_id,
        **provider_and_name(answering_model(run.order)),
        benchmark_suite=benchmark_of(run.order),
        status=word_of(run_pb2.RunState, run.state),
        progress=job_progress(run.progress),
        wait=job_wait(run),
        **given,
    )


def queue_worker(body: type[W], worker: scheduler_pb2.WorkerInfo) -> W:
    load = _load(worker.load) if worker.HasField("load") else None
    return present(body, worker, state=state_of(worker), load=load)


def _load(load: model_pb2.EngineLoad) -> QueueLoad:
    queries = load.prefix_cache_queries
    return present(QueueLoad, load, prefix_hit_rate=load.prefix_cache_hits / queries if queries else None)


def _duration(seconds: float | None) -> Duration | None:
    if seconds is None:
        return None
    duration = Duration()
    duration.FromTimedelta(timedelta(seconds=seconds))
    return duration
