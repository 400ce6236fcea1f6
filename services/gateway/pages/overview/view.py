"""Views of the overview for its template."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from proctor.v1 import leaderboard_service_pb2
from services.gateway.api.leaderboard import history_entry
from services.gateway.pages.addresses import FilteredPage
from services.gateway.pages.filters import MAIN_METRICS, FilterOptions
from services.gateway.pages.rows.closed_runs import ClosedRun
from services.gateway.pages.rows.runs import NewestRuns

# As many as there are colours.
_MAX_LINES = 6


class ScoredRun(ClosedRun):
    score: float
    completed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewView(FilteredPage):
    """`points` are the newest runs with the metric. `fault`: why the filters are refused."""

    points: Sequence[ScoredRun]
    total: int
    is_whole: bool
    metric: str
    newest: NewestRuns
    options: FilterOptions
    days: int
    now: datetime
    fault: str

    @property
    def averaged(self) -> Sequence[ScoredRun]:
        """Runs that the average is over.

        The main metrics of suites may differ in their units: without a suite, shares alone are averaged.
        """
        is_mixed = not self.get("suite") and self.metric in MAIN_METRICS
        return [each for each in self.points if not is_mixed or abs(each.score) <= 1]

    @property
    def left_out(self) -> int:
        """Runs in other units than those of the average."""
        return len(self.points) - len(self.averaged)

    @property
    def average(self) -> float | None:
        """The mean score; every run counts once."""
        counted = self.averaged
        return sum(each.score for each in counted) / len(counted) if counted else None

    @property
    def models(self) -> int:
        return len({each.model for each in self.points})

    @property
    def latest(self) -> ScoredRun | None:
        return self.points[0] if self.points else None

    @property
    def lines(self) -> Sequence[tuple[str, Sequence[ScoredRun]]]:
        """Points by model, those with the most runs first; oldest run first."""
        by_model: dict[str, list[ScoredRun]] = defaultdict(list)
        for point in reversed(self.points):
            by_model[point.model].append(point)
        return sorted(by_model.items(), key=lambda each: -len(each[1]))[:_MAX_LINES]

    @property
    def chart(self) -> str:
        """Data of <trend-chart>: seconds since 1970 and scores of each model."""
        lines = [
            {
                "name": name,
                "x": [point.completed_at.timestamp() for point in points],
                "y": [point.score for point in points],
            }
            for name, points in self.lines
        ]
        return json.dumps({"lines": lines})


def points_of(history: leaderboard_service_pb2.ListHistoryResponse) -> list[ScoredRun]:
    """Runs without the figure are left out."""
    return [
        history_entry(ScoredRun, entry)
        for entry in history.entries
        if entry.figure.HasField("mean") and entry.HasField("closed_at")
    ]
