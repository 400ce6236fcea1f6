"""Models of a leaderboard as rows, and the scale of their figures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from proctor.v1 import leaderboard_pb2
from proctor.v1.leaderboard_service_pb2 import GetLeaderboardResponse
from proctor.wire.enums import word_of
from services.gateway.http.presentation import interval, moment, optional
from services.gateway.pages.interval_plot import Scale


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
    method: str
    tasks: int
    direction: str
    difference: float | None
    previous_run_id: str
    tied_with: Sequence[str]
    not_compared_with: Sequence[str]
    is_selected_best: bool
    reasons: Sequence[str]
    closed_at: datetime | None


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
        rows += [entry_row(entry, shown) for entry in entries]
    return rows


def entry_row(entry: leaderboard_pb2.LeaderboardEntry, rank: str) -> LeaderboardRow:
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
        method=entry.figure.interval_method,
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


def scale_of(rows: Iterable[LeaderboardRow]) -> Scale:
    """Around all figures and their intervals; shares stay within 0 and 1."""
    ends = [end for row in rows for end in (row.value, row.low, row.high) if end is not None]
    is_share = all(0 <= end <= 1 for end in ends)
    return Scale.around(ends, within=(0.0, 1.0) if is_share else None)
