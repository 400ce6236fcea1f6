"""Views of the queue for its template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from proctor.v1 import queue_service_pb2 as queue_pb2
from services.gateway.api.queue import (
    FullDisk,
    Limits,
    ProviderRate,
    QueueUser,
    QueueWorker,
    RefusedStream,
    limits_of,
    queue_worker,
)
from services.gateway.http.presentation import present
from services.gateway.pages.rows.runs import RunRow, run_row
from services.gateway.pages.text import duration, size

_RUNS_FOR = "seconds that it may be running"
_KEPT_FOR = "seconds that a run keeps its slot against equal priority, at least 5"
_FILES = "data sets, files, batch outputs, versions of suites, sets of tasks and runs with artifacts"


@dataclass(frozen=True, slots=True)
class LimitField:
    """A field of the form; its hint may have the limit in other units."""

    name: str
    label: str
    hint: str
    minimum: int = 1


class WorkerRow(QueueWorker):
    loading_model: str

    @property
    def model(self) -> str:
        return self.loading_model or self.loaded_model


@dataclass(frozen=True, slots=True)
class QueueView:
    """`entered` are refused inputs of the limits, by the names of their fields."""

    running: Sequence[RunRow]
    pending: Sequence[RunRow]
    pending_total: int
    paused: Sequence[RunRow]
    workers: Sequence[WorkerRow]
    rates: Sequence[ProviderRate]
    refused_streams: Sequence[RefusedStream]
    full_disks: Sequence[FullDisk]
    users: Sequence[QueueUser]
    limits: Limits
    faults: Mapping[str, str]
    entered: Mapping[str, str]
    now: datetime

    @property
    def fields(self) -> Sequence[LimitField]:
        limits = self.limits
        run_time, kept = limits.run_time_limit_seconds, limits.min_run_time_seconds
        return (
            LimitField("max_running_runs", "Run slots", "runs that run at a time"),
            LimitField("max_pending_runs_per_user", "Pending runs of a user", "paused ones too"),
            LimitField(
                "max_requests_per_minute", "Requests a minute", "orders, uploads and changes of a user"
            ),
            LimitField(
                "run_time_limit_seconds", "Time limit of a run", f"{_RUNS_FOR}: {duration(run_time)}", 0
            ),
            LimitField("min_run_time_seconds", "Time before preemption", f"{_KEPT_FOR}: {duration(kept)}", 0),
            LimitField(
                "max_stored_bytes_per_user",
                "Storage of a user",
                f"bytes of all that a user stores: {size(limits.max_stored_bytes_per_user)}",
            ),
            LimitField("max_stored_files_per_user", "Stored files of a user", _FILES),
            LimitField("max_stored_rows_per_user", "Stored rows of a user", "of data sets and files"),
            LimitField("max_stored_bytes_per_project", "Storage of a project", "bytes; 0: no limit", 0),
        )

    def value(self, name: str) -> str:
        """The limit as its field shows it."""
        limit = getattr(self.limits, name)
        return f"{limit:.15g}" if isinstance(limit, float) else str(limit)

    def shown(self, name: str) -> str:
        """The content of the field. A refused input stays in it."""
        return self.entered.get(name, self.value(name))


def queue_view(
    queue: queue_pb2.GetQueueResponse,
    now: datetime,
    faults: Mapping[str, str] | None = None,
    entered: Mapping[str, str] | None = None,
) -> QueueView:
    return QueueView(
        running=[run_row(run) for run in queue.running],
        pending=[run_row(run) for run in queue.pending],
        pending_total=queue.pending_total,
        paused=[run_row(run) for run in queue.paused],
        workers=[queue_worker(WorkerRow, worker) for worker in queue.workers],
        rates=[present(ProviderRate, rate) for rate in queue.rates],
        refused_streams=[present(RefusedStream, stream) for stream in queue.refused_streams],
        full_disks=[present(FullDisk, disk) for disk in queue.full_disks],
        users=[present(QueueUser, user) for user in queue.users],
        limits=limits_of(queue.limits),
        faults=faults or {},
        entered=entered or {},
        now=now,
    )
