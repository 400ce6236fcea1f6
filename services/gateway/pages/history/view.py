"""Views of the history: closed runs with their figures, and totals over all pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from proctor.v1.leaderboard_service_pb2 import ListHistoryResponse
from proctor.values.run import MAX_HISTORY_DAYS, RunState
from services.gateway.pages.closed_runs import ClosedRun, closed_run
from services.gateway.pages.filters import FilterOptions

DAYS = 30
# Those that a run ends in.
STATES = tuple(state.value for state in RunState if state.is_final)


@dataclass(frozen=True, slots=True)
class HistoryView:
    """A page of the history, with sums over all pages. `fault`: why the filters are refused."""

    rows: Sequence[ClosedRun]
    total: int
    completed_runs: int
    answered: int
    failed: int
    following: str
    fault: str
    suites: Sequence[str]
    metrics: Sequence[str]
    filters: Mapping[str, str]
    now: datetime
    # Names that the field offers.
    models: Sequence[str] = ()

    def get(self, name: str) -> str:
        return self.filters.get(name, "")

    def link(self, **changes: str) -> str:
        """The address of the history with other filters, from its first page."""
        return f"/history{_query({**self.filters, 'after': '', **changes})}"

    def export(self, form: str) -> str:
        """All runs that match, as a file."""
        return f"/history/export.{form}{_query({**self.filters, 'after': ''})}"

    @property
    def days(self) -> int:
        return int(self.filters.get("days", DAYS))

    @property
    def max_days(self) -> int:
        return MAX_HISTORY_DAYS

    @property
    def is_filtered(self) -> bool:
        return any(name not in {"after", "days"} for name in self.filters)

    @property
    def states(self) -> Sequence[str]:
        return STATES

    @property
    def is_whole(self) -> bool:
        """These are all runs that match."""
        return len(self.rows) == self.total

    @property
    def completed_share(self) -> float | None:
        return self.completed_runs / self.total if self.total else None

    @property
    def answered_share(self) -> float | None:
        """The share of the recorded outcomes."""
        recorded = self.answered + self.failed
        return self.answered / recorded if recorded else None


def history_view(
    found: ListHistoryResponse, options: FilterOptions, now: datetime, fault: str = ""
) -> HistoryView:
    return HistoryView(
        rows=[closed_run(entry) for entry in found.entries],
        total=found.total,
        completed_runs=found.totals.completed_runs,
        answered=found.totals.answered,
        failed=found.totals.failed,
        following=found.next_page_token,
        fault=fault,
        suites=options.suites,
        metrics=options.metrics,
        filters=options.filters,
        now=now,
    )


def _query(given: Mapping[str, str]) -> str:
    kept = {name: value for name, value in given.items() if value}
    return f"?{urlencode(kept)}" if kept else ""
