"""A closed run as a row: of the history, of the overview, and of what can be compared."""

from proctor.v1 import leaderboard_pb2
from services.gateway.api.leaderboard import HistoryEntryShown, history_entry
from services.gateway.pages.rows.figure import Figure


class ClosedRun(HistoryEntryShown):
    """The figure is empty where the run has none of the metric."""

    model: str
    figure: Figure

    @property
    def benchmark(self) -> str:
        return self.dataset_name or self.benchmark_suite


def closed_run(entry: leaderboard_pb2.LeaderboardEntry) -> ClosedRun:
    return history_entry(ClosedRun, entry)
