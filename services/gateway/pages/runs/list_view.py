"""Views of the list of runs for its template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.wire.enums import words_of
from services.gateway.pages.runs_table import RunRow, run_row

STATES = words_of(run_pb2.RunState)


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
