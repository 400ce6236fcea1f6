"""What the template of the list of runs knows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.wire.enums import word_of, words_of
from services.gateway.http.presentation import moment, optional

STATES = words_of(run_pb2.RunState)


@dataclass(frozen=True, slots=True)
class RunRow:
    run_id: str
    model: str
    subject: str
    is_dataset: bool
    state: str
    completed: int
    total: int
    eta: float | None
    waits_for: str
    error: str
    user: str
    created_at: datetime | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class RunListView:
    """A page of runs; `filters` are those of its address, without empty ones."""

    rows: Sequence[RunRow]
    total: int
    following: str
    filters: Mapping[str, str]
    suites: Sequence[str]
    now: datetime

    def link(self, **changes: str) -> str:
        """The address of the list with other filters, from its first page."""
        kept = {name: value for name, value in {**self.filters, "after": "", **changes}.items() if value}
        return f"/runs?{urlencode(kept)}" if kept else "/runs"

    def get(self, name: str) -> str:
        return self.filters.get(name, "")

    @property
    def is_filtered(self) -> bool:
        return any(name != "after" for name in self.filters)

    @property
    def has_live(self) -> bool:
        return any(row.state in {"pending", "running"} for row in self.rows)


def run_list_view(
    listed: scheduler_pb2.ListRunsResponse, filters: Mapping[str, str], suites: Sequence[str], now: datetime
) -> RunListView:
    rows = [run_row(run) for run in listed.runs]
    given = {name: value for name, value in filters.items() if value}
    return RunListView(rows, listed.total, listed.next_page_token, given, suites, now)


def run_row(run: run_pb2.Run) -> RunRow:
    started, finished = moment(run.started_at), moment(run.finished_at)
    return RunRow(
        run_id=run.run_id,
        model=run.order.model,
        subject=run.dataset_name or run.order.suite or run.order.dataset_id,
        is_dataset=bool(run.order.dataset_id),
        state=word_of(run_pb2.RunState, run.state),
        completed=run.progress.completed,
        total=run.progress.total,
        eta=optional(run.progress, "eta_seconds"),
        waits_for=run.wait.blocked_by,
        error=run.error.message,
        user=run.user,
        created_at=moment(run.created_at),
        seconds=(finished - started).total_seconds() if started and finished else None,
    )
