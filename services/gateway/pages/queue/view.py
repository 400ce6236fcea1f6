"""Views of the queue for its template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.wire.enums import word_of
from services.gateway.http.presentation import moment, optional, state_of
from services.gateway.pages.text import duration, size


@dataclass(frozen=True, slots=True)
class QueuedRun:
    run_id: str
    model: str
    benchmark: str
    user: str
    priority: str
    state: str
    recorded: int
    total: int
    eta: float | None
    position: int
    blocked_by: str
    start: float | None
    start_low: float | None
    start_high: float | None
    since: datetime | None


@dataclass(frozen=True, slots=True)
class WorkerRow:
    name: str
    pool: str
    engine: str
    model: str
    state: str
    samples_in_flight: int
    concurrency: int
    running_requests: int | None
    waiting_requests: int | None
    kv_cache: float | None
    prefix_hits: float | None
    cannot_load: Sequence[tuple[str, str]]
    seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class RateRow:
    """A provider that is asked now; limits are None where its headers name none."""

    pools: Sequence[str]
    rate: float
    requests_waiting_for_quota: int
    rate_limited: int
    max_requests: float | None
    max_tokens: float | None
    resumes_in: float | None


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of the whole system; `value` is what the form shows."""

    name: str
    label: str
    value: str
    hint: str
    minimum: str


@dataclass(frozen=True, slots=True)
class QueueView:
    running: Sequence[QueuedRun]
    pending: Sequence[QueuedRun]
    pending_total: int
    paused: Sequence[QueuedRun]
    workers: Sequence[WorkerRow]
    rates: Sequence[RateRow]
    users: Sequence[tuple[str, int, int]]
    limits: Sequence[Limit]
    highest_priorities: Sequence[tuple[str, str]]
    slots: int
    faults: Mapping[str, str]
    entered: Mapping[str, str]
    now: datetime

    def shown(self, limit: Limit) -> str:
        """The content of the field. A refused input stays in it."""
        return self.entered.get(limit.name, limit.value)


def queue_view(
    queue: queue_pb2.GetQueueResponse,
    now: datetime,
    faults: Mapping[str, str] | None = None,
    entered: Mapping[str, str] | None = None,
) -> QueueView:
    return QueueView(
        running=[_run(run) for run in queue.running],
        pending=[_run(run) for run in queue.pending],
        pending_total=queue.pending_total,
        paused=[_run(run) for run in queue.paused],
        workers=[_worker(worker) for worker in queue.workers],
        rates=[_rate(rate, now) for rate in queue.rates],
        users=[(each.user, each.running, each.pending) for each in queue.users],
        limits=_limits(queue.limits),
        highest_priorities=[
            (each.user, word_of(run_pb2.Priority, each.highest)) for each in queue.limits.highest_priorities
        ],
        slots=queue.limits.max_running_runs,
        faults=faults or {},
        entered=entered or {},
        now=now,
    )


def _limits(limits: queue_pb2.QueueLimits) -> list[Limit]:
    run_time = limits.run_time_limit.ToTimedelta().total_seconds()
    kept = limits.min_run_time.ToTimedelta().total_seconds()
    return [
        Limit("max_running_runs", "Run slots", str(limits.max_running_runs), "runs that run at a time", "1"),
        Limit(
            "max_pending_runs_per_user",
            "Pending runs of a user",
            str(limits.max_pending_runs_per_user),
            "paused ones too",
            "1",
        ),
        Limit(
            "max_requests_per_minute",
            "Requests a minute",
            str(limits.max_requests_per_minute),
            "orders, uploads and changes of a user",
            "1",
        ),
        Limit(
            "run_time_limit_seconds",
            "Time limit of a run",
            f"{run_time:.15g}",
            f"seconds that it may be running: {duration(run_time)}",
            "0",
        ),
        Limit(
            "min_run_time_seconds",
            "Time before preemption",
            f"{kept:.15g}",
            f"seconds that a run keeps its slot against equal priority, at least 5: {duration(kept)}",
            "0",
        ),
        *_storage_limits(limits),
    ]


def _storage_limits(limits: queue_pb2.QueueLimits) -> list[Limit]:
    return [
        Limit(
            "max_stored_bytes_per_user",
            "Storage of a user",
            str(limits.max_stored_bytes_per_user),
            f"bytes of all that a user stores: {size(limits.max_stored_bytes_per_user)}",
            "1",
        ),
        Limit(
            "max_stored_files_per_user",
            "Stored files of a user",
            str(limits.max_stored_files_per_user),
            "data sets, files, batch outputs, versions of suites, sets of tasks and runs with artifacts",
            "1",
        ),
        Limit(
            "max_stored_rows_per_user",
            "Stored rows of a user",
            str(limits.max_stored_rows_per_user),
            "of data sets and files",
            "1",
        ),
        Limit(
            "max_stored_bytes_per_project",
            "Storage of a project",
            str(limits.max_stored_bytes_per_project),
            "bytes; 0: no limit",
            "0",
        ),
    ]


def _run(run: run_pb2.Run) -> QueuedRun:
    return QueuedRun(
        run_id=run.run_id,
        model=run.order.model,
        benchmark=run.dataset_name or run.order.suite or run.order.dataset_id,
        user=run.user,
        priority=word_of(run_pb2.Priority, run.order.priority) if run.order.priority else "",
        state=word_of(run_pb2.RunState, run.state),
        recorded=run.progress.recorded,
        total=run.progress.total,
        eta=optional(run.progress, "eta_seconds"),
        position=run.wait.position,
        blocked_by=run.wait.blocked_by,
        start=optional(run.wait, "estimated_seconds"),
        start_low=optional(run.wait, "estimated_low_seconds"),
        start_high=optional(run.wait, "estimated_high_seconds"),
        since=moment(run.created_at),
    )


def _rate(rate: queue_pb2.ProviderRate, now: datetime) -> RateRow:
    resume_at = moment(rate.resume_at)
    return RateRow(
        pools=list(rate.pools),
        rate=rate.requests_per_second,
        requests_waiting_for_quota=rate.requests_waiting_for_quota,
        rate_limited=rate.rate_limited,
        max_requests=optional(rate, "allowed_requests_per_second"),
        max_tokens=optional(rate, "allowed_tokens_per_second"),
        resumes_in=max((resume_at - now).total_seconds(), 0.0) if resume_at else None,
    )


def _worker(worker: scheduler_pb2.WorkerInfo) -> WorkerRow:
    load = worker.load if worker.HasField("load") else None
    looked_up = load.prefix_cache_queries if load else 0
    return WorkerRow(
        name=worker.worker_id,
        pool=worker.pool,
        engine=worker.engine,
        model=worker.loading_model or worker.loaded_model,
        state=state_of(worker),
        samples_in_flight=worker.samples_in_flight,
        concurrency=worker.concurrency,
        running_requests=load.running_requests if load else None,
        waiting_requests=load.waiting_requests if load else None,
        kv_cache=load.kv_cache_usage if load else None,
        prefix_hits=load.prefix_cache_hits / looked_up if load and looked_up else None,
        cannot_load=sorted(worker.cannot_load.items()),
        seen_at=moment(worker.seen_at),
    )
