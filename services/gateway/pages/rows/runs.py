"""A run as a row of a table, as several pages show it, and the newest runs as such a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.wire.rollout_orders import answering_model, asks_no_model
from services.gateway.api.queue import QueuedJob, queued_job
from services.gateway.api.runs.job import archive_state
from services.gateway.backends.calls import Scheduler
from services.gateway.pages.addresses import address

_SHOWN = 8
_SHOWN_OF_DATASET = 20


class RunRow(QueuedJob):
    """`dataset_id` and `dataset_name` are empty for a run over a suite.

    Where `asks_no_model`, `model` says instead whose answers they are.
    """

    model: str
    asks_no_model: bool
    dataset_id: str
    dataset_name: str
    rollouts: int
    tokens_per_second: float | None
    error: str
    finished_at: datetime | None
    archive_state: str = ""

    @property
    def benchmark(self) -> str:
        return self.dataset_name or self.benchmark_suite

    @property
    def seconds(self) -> float | None:
        """The time from its start to its end."""
        started, finished = self.started_at, self.finished_at
        return (finished - started).total_seconds() if started and finished else None


R = TypeVar("R", bound=RunRow)


@dataclass(frozen=True, slots=True)
class NewestRuns:
    """The newest runs, of all, of a suite or over a data set: a part of their page that is pushed."""

    runs: Sequence[RunRow]
    total: int
    dataset_id: str
    suite: str
    now: datetime

    @property
    def socket(self) -> str:
        """The address of the socket that pushes them, up to its last parameter."""
        if self.dataset_id:
            return f"/datasets/{self.dataset_id}/socket?"
        return f"{address('/socket', {'suite': self.suite})}&" if self.suite else "/socket?"

    @property
    def all_link(self) -> str:
        return address("/runs", {"suite": self.suite, "dataset": self.dataset_id})

    @property
    def compare_link(self) -> str:
        """The newest completed runs over the data set beside each other; "" where there are not two."""
        completed = [row.job_id for row in self.runs if row.status == "completed"][:6]
        is_offered = self.dataset_id and len(completed) > 1
        return "/compare?" + "&".join(f"run={run_id}" for run_id in completed) if is_offered else ""


async def newest_runs(
    scheduler: Scheduler, now: datetime, *, dataset_id: str = "", suite: str = ""
) -> NewestRuns:
    size = _SHOWN_OF_DATASET if dataset_id else _SHOWN
    request = scheduler_pb2.ListRunsRequest(page_size=size, dataset_id=dataset_id, benchmark=suite)
    listed = await scheduler.runs.ListRuns(request)
    rows = [run_row(run) for run in listed.runs]
    return NewestRuns(rows, listed.total, dataset_id, suite, now)


def run_row(run: run_pb2.Run) -> RunRow:
    return run_shown(RunRow, run, error=run.error.message)


def run_shown(row: type[R], run: run_pb2.Run, **given: object) -> R:
    """`given` are the fields that only this row has, and its error."""
    return queued_job(
        row,
        run,
        model=answering_model(run.order),
        asks_no_model=asks_no_model(run.order),
        rollouts=max(1, run.order.rollouts),
        archive_state=archive_state(run),
        **given,
    )
