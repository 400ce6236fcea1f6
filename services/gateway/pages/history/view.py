"""Views of the history: closed runs with their figures, and totals over all pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from proctor.v1.leaderboard_service_pb2 import HistoryTotals, ListHistoryResponse
from proctor.values.plain import is_counted
from proctor.values.run import MAX_HISTORY_DAYS, RunState
from services.gateway.pages.addresses import FilteredPage
from services.gateway.pages.filters import FilterOptions
from services.gateway.pages.rows.closed_runs import ClosedRun, closed_run

DAYS = 30
# Those that a run ends in.
STATES = tuple(state.value for state in RunState if state.is_final)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryView(FilteredPage):
    """A page of the history, with sums over the newest 1,001 runs. `fault`: why the filters are refused."""

    rows: Sequence[ClosedRun]
    total: int
    totals: HistoryTotals
    following: str
    fault: str
    options: FilterOptions
    now: datetime
    # Names that the field offers.
    models: Sequence[str] = ()

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
    def is_counted(self) -> bool:
        return is_counted(self.total)

    @property
    def completed_share(self) -> float | None:
        return self.totals.completed_runs / self.total if self.total else None

    @property
    def answered_share(self) -> float | None:
        """The share of the recorded outcomes."""
        recorded = self.totals.answered + self.totals.failed
        return self.totals.answered / recorded if recorded else None


def history_view(
    found: ListHistoryResponse, options: FilterOptions, now: datetime, fault: str = ""
) -> HistoryView:
    return HistoryView(
        rows=[closed_run(entry) for entry in found.entries],
        total=found.total,
        totals=found.totals,
        following=found.next_page_token,
        fault=fault,
        path="/history",
        filters=options.filters,
        options=options,
        now=now,
    )
