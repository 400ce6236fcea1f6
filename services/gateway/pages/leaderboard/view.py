"""What the template of the leaderboard knows: bands of models, with figures on one scale."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from urllib.parse import urlencode

from proctor.v1 import leaderboard_pb2, run_pb2
from proctor.v1.leaderboard_service_pb2 import GetLeaderboardResponse
from proctor.values.sample import MAX_FEWSHOT
from proctor.wire.enums import word_of, words_of
from services.gateway.http.presentation import interval, moment, optional
from services.gateway.pages.filters import FilterChoices
from services.gateway.pages.interval_plot import Scale
from services.gateway.paths import BENCHMARKING

SCORINGS = words_of(run_pb2.ScoringMethod)
# Models on the page, and those where all are asked for: as many as results lists.
SHOWN = 25
# Both are limits of results: the most that it lists, and the most runs that it compares.
MOST_SHOWN = 100
_MOST_COMPARED = 6
_API = f"{BENCHMARKING}/leaderboard"
# Filters of the page that the API does not have.
_OF_THE_PAGE = ("q",)


@dataclass(frozen=True, slots=True)
class LeaderboardRow:
    """A model or a baseline; `rank` is a range where models share it, and "" for those without one."""

    rank: str
    model: str
    run_id: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    tasks: int
    direction: str
    difference: float | None
    previous_run_id: str
    tied_with: Sequence[str]
    not_compared_with: Sequence[str]
    is_selected_best: bool
    reasons: Sequence[str]
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class LeaderboardView:
    """`bands`: models that share a rank, the best ones first. `fault`: why nothing can be ranked as asked."""

    bands: Sequence[Sequence[LeaderboardRow]]
    baselines: Sequence[LeaderboardRow]
    unranked: Sequence[LeaderboardRow]
    scale: Scale
    first: LeaderboardRow | None
    listed: int
    total: int
    metric: str
    scoring: str
    note: str
    fault: str
    last_updated: datetime | None
    suites: Sequence[str]
    metrics: Sequence[str]
    filters: Mapping[str, str]
    now: datetime

    def get(self, name: str) -> str:
        return self.filters.get(name, "")

    def link(self, **changes: str) -> str:
        """The address of the page with other filters, without empty ones."""
        return f"/leaderboard{self._query(changes)}"

    @property
    def scorings(self) -> Sequence[str]:
        return SCORINGS

    @property
    def most_shots(self) -> int:
        return MAX_FEWSHOT

    @property
    def csv_link(self) -> str:
        return f"/leaderboard/export.csv{self._query({})}"

    @property
    def json_link(self) -> str:
        """The same ranking from the REST API; it has the models that the page filters out, too."""
        changes = dict.fromkeys(_OF_THE_PAGE, "")
        return f"{_API}{self._query({**changes, 'limit': str(self.limit)})}"

    @property
    def compare_link(self) -> str:
        """The first ranked models beside each other; "" where there are not two."""
        first = [row.model for band in self.bands for row in band][:_MOST_COMPARED]
        query = urlencode([*(("model", model) for model in first), ("suite", self.get("suite"))])
        return f"/compare?{query}" if len(first) > 1 else ""

    @property
    def limit(self) -> int:
        """The most models that are listed: of the ranked, and of the unranked."""
        return int(self.filters.get("limit", SHOWN))

    @property
    def shown(self) -> int:
        return sum(map(len, self.bands))

    @property
    def related(self) -> Sequence[LeaderboardRow]:
        """Models for which some pair shows no difference, or has no test."""
        return [row for band in self.bands for row in band if row.tied_with or row.not_compared_with]

    def _query(self, changes: Mapping[str, str]) -> str:
        kept = {name: value for name, value in {**self.filters, **changes}.items() if value}
        return f"?{urlencode(kept)}" if kept else ""


def leaderboard_view(
    found: GetLeaderboardResponse, choices: FilterChoices, now: datetime, fault: str = ""
) -> LeaderboardView:
    name = choices.filters.get("q", "").casefold()
    rows = ranked_rows(found)
    shown = [row for row in rows if name in row.model.casefold()]
    baselines = [_row(entry, "") for entry in found.baselines]
    unranked = [_row(entry, "") for entry in found.unranked]
    first = rows[0] if rows else None
    return LeaderboardView(
        bands=[list(band) for _, band in groupby(shown, key=lambda row: row.rank)],
        baselines=baselines,
        unranked=[row for row in unranked if name in row.model.casefold()],
        scale=_scale([*rows[:1], *shown, *baselines]),
        first=first,
        listed=len(rows),
        total=found.total_models,
        metric=found.metric or choices.filters.get("metric", "") or "accuracy",
        scoring=word_of(run_pb2.ScoringMethod, found.scoring_method) if found.scoring_method else "",
        note=found.note,
        fault=fault,
        last_updated=moment(found.last_updated),
        suites=choices.suites,
        metrics=choices.metrics,
        filters=choices.filters,
        now=now,
    )


def ranked_rows(found: GetLeaderboardResponse) -> list[LeaderboardRow]:
    """Rows of all listed models.

    The last band has an open end where models beyond the list may share its rank.
    """
    rows: list[LeaderboardRow] = []
    for rank, band in groupby(found.entries, key=lambda entry: entry.rank):
        entries = list(band)
        last = rank + len(entries) - 1
        is_open = len(rows) + len(entries) == len(found.entries) < found.total_models
        shown = f"{rank}+" if is_open else f"{rank}–{last}" if last > rank else str(rank)
        rows += [_row(entry, shown) for entry in entries]
    return rows


def _row(entry: leaderboard_pb2.LeaderboardEntry, rank: str) -> LeaderboardRow:
    low, high = interval(entry.figure) or (None, None)
    trend = entry.trend
    return LeaderboardRow(
        rank=rank,
        model=entry.model,
        run_id=entry.run_id,
        value=optional(entry.figure, "mean"),
        low=low,
        high=high,
        n=entry.figure.n,
        tasks=entry.task_count,
        direction=word_of(leaderboard_pb2.TrendDirection, trend.direction) if trend.direction else "",
        difference=optional(trend, "difference"),
        previous_run_id=trend.previous_run_id,
        tied_with=list(entry.tied_with),
        not_compared_with=list(entry.not_compared_with),
        is_selected_best=entry.is_selected_best,
        reasons=list(entry.unranked_because),
        closed_at=moment(entry.closed_at),
    )


def _scale(rows: Iterable[LeaderboardRow]) -> Scale:
    """Around all figures and their intervals; shares stay within 0 and 1."""
    ends = [end for row in rows for end in (row.value, row.low, row.high) if end is not None]
    is_share = all(0 <= end <= 1 for end in ends)
    return Scale.around(ends, within=(0.0, 1.0) if is_share else None)
