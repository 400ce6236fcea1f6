"""A run as a row of a table, as several pages show it."""

from dataclasses import dataclass
from datetime import datetime

from proctor.v1 import run_pb2
from proctor.wire.enums import word_of
from services.gateway.http.presentation import moment, optional


@dataclass(frozen=True, slots=True)
class RunRow:
    run_id: str
    model: str
    benchmark: str
    is_dataset: bool
    state: str
    completed: int
    total: int
    eta: float | None
    tokens_per_second: float | None
    waits_for: str
    error: str
    user: str
    created_at: datetime | None
    seconds: float | None


def run_row(run: run_pb2.Run) -> RunRow:
    started, finished = moment(run.started_at), moment(run.finished_at)
    return RunRow(
        run_id=run.run_id,
        model=run.order.model,
        benchmark=run.dataset_name or run.order.suite or run.order.dataset_id,
        is_dataset=bool(run.order.dataset_id),
        state=word_of(run_pb2.RunState, run.state),
        completed=run.progress.completed,
        total=run.progress.total,
        eta=optional(run.progress, "eta_seconds"),
        tokens_per_second=optional(run.progress, "tokens_per_second"),
        waits_for=run.wait.blocked_by,
        error=run.error.message,
        user=run.user,
        created_at=moment(run.created_at),
        seconds=(finished - started).total_seconds() if started and finished else None,
    )
