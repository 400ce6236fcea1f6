"""A run as a row of a table, as several pages show it, and the newest runs as such a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.wire.enums import word_of
from services.gateway.backends.calls import Scheduler
from services.gateway.http.presentation import moment, optional

_SHOWN = 8
_SHOWN_OF_DATASET = 20


@dataclass(frozen=True, slots=True)
class RunRow:
    run_id: str
    model: str
    benchmark: str
    is_dataset: bool
    rollouts: int
    state: str
    recorded: int
    total: int
    eta: float | None
    tokens_per_second: float | None
    waits_for: str
    error: str
    user: str
    created_at: datetime | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class NewestRuns:
    """The newest runs, of all or over one data set: a part of their page that is pushed."""

    runs: Sequence[RunRow]
    total: int
    dataset_id: str
    now: datetime

    @property
    def socket(self) -> str:
        """The address of the socket that pushes them, up to its last parameter."""
        return f"/datasets/{self.dataset_id}/socket?" if self.dataset_id else "/socket?"

    @property
    def compare_link(self) -> str:
        """The newest completed runs over the data set beside each other; "" where there are not two."""
        completed = [row.run_id for row in self.runs if row.state == "completed"][:6]
        is_offered = self.dataset_id and len(completed) > 1
        return "/compare?" + "&".join(f"run={run_id}" for run_id in completed) if is_offered else ""


async def newest_runs(scheduler: Scheduler, now: datetime, dataset_id: str = "") -> NewestRuns:
    size = _SHOWN_OF_DATASET if dataset_id else _SHOWN
    request = scheduler_pb2.ListRunsRequest(page_size=size, dataset_id=dataset_id)
    listed = await scheduler.runs.ListRuns(request)
    return NewestRuns([run_row(run) for run in listed.runs], listed.total, dataset_id, now)


def run_row(run: run_pb2.Run) -> RunRow:
    started, finished = moment(run.started_at), moment(run.finished_at)
    return RunRow(
        run_id=run.run_id,
        model=run.order.model,
        benchmark=run.dataset_name or run.order.suite or run.order.dataset_id,
        is_dataset=bool(run.order.dataset_id),
        rollouts=max(1, run.order.rollouts),
        state=word_of(run_pb2.RunState, run.state),
        recorded=run.progress.recorded,
        total=run.progress.total,
        eta=optional(run.progress, "eta_seconds"),
        tokens_per_second=optional(run.progress, "tokens_per_second"),
        waits_for=run.wait.blocked_by,
        error=run.error.message,
        user=run.user,
        created_at=moment(run.created_at),
        seconds=(finished - started).total_seconds() if started and finished else None,
    )
