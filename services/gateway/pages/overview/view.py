"""Views of the overview for its template."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from proctor.v1 import leaderboard_pb2, leaderboard_service_pb2
from services.gateway.api.leaderboard import history_entry
from services.gateway.pages.addresses import FilteredPage
from services.gateway.pages.filters import FilterOptions
from services.gateway.pages.rows.closed_runs import ClosedRun
from services.gateway.pages.rows.figure import Figure
from services.gateway.pages.rows.runs import NewestRuns

# As many as there are colours.
_MAX_LINES = 6
# Rows of the table below the chart.
MAX_ROWS = 100


class ScoredRun(ClosedRun):
    score: float
    completed_at: datetime


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """The parts of a run that the chart and the averages need: there are hundreds, and a row takes long."""

    model: str
    benchmark: str
    score: float
    completed_at: datetime


@dataclass(frozen=True, slots=True)
class RecentResult:
    """A run with its headline figure, and those of two usual metrics as far as it has them."""

    run: ScoredRun
    accuracy: Figure
    f1: Figure


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of all runs of the days whose models have a price."""

    cost: float
    priced_runs: int
    currency: str


@dataclass(frozen=True, slots=True)
class Average:
    """The mean score of the runs of a suite; every run counts once."""

    suite: str
    score: float
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewView(FilteredPage):
    """`points` are the newest of the `total` runs that have the metric, `rows` the newest of these.

    `fault`: why filters are refused.
    """

    points: Sequence[TrendPoint]
    rows: Sequence[ScoredRun]
    recent: Sequence[RecentResult]
    spent: Spent
    total: int
    is_whole: bool
    metric: str
    newest: NewestRuns
    options: FilterOptions
    days: int
    now: datetime
    fault: str

    @property
    def averages(self) -> Sequence[Average]:
        """One for each suite, since scores of unlike suites have no common mean; most runs first."""
        scores: dict[str, list[float]] = defaultdict(list)
        for point in self.points:
            scores[point.benchmark].append(point.score)
        averages = [Average(suite, sum(each) / len(each), len(each)) for suite, each in scores.items()]
        return sorted(averages, key=lambda each: -each.runs)

    @property
    def models(self) -> int:
        return len({each.model for each in self.points})

    @property
    def latest(self) -> ScoredRun | None:
        return self.rows[0] if self.rows else None

    @property
    def lines(self) -> Sequence[tuple[str, Sequence[TrendPoint]]]:
        """Points by model, those with the most runs first; oldest run first."""
        by_model: dict[str, list[TrendPoint]] = defaultdict(list)
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


def points_of(history: leaderboard_service_pb2.ListHistoryResponse) -> list[TrendPoint]:
    """Of the runs that have the figure."""
    return [
        TrendPoint(
            entry.model,
            entry.dataset_name or entry.benchmark,
            entry.figure.mean,
            entry.closed_at.ToDatetime(UTC),
        )
        for entry in _scored(history)
    ]


def rows_of(
    history: leaderboard_service_pb2.ListHistoryResponse, limit: int | None = None
) -> list[ScoredRun]:
    """The first of the runs that have the figure; without a limit all of them."""
    return [history_entry(ScoredRun, entry) for entry in islice(_scored(history), limit)]


def _scored(
    history: leaderboard_service_pb2.ListHistoryResponse,
) -> Iterator[leaderboard_pb2.LeaderboardEntry]:
    for entry in history.entries:
        if entry.figure.HasField("mean") and entry.HasField("closed_at"):
            yield entry
