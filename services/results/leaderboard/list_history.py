"""Lists closed runs, of the last days or of some ids; failed ones too, with the figures they have."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from proctor.values.run import MAX_HISTORY_DAYS, RunKind, RunState
from services.common.checked_fields import checked_number
from services.common.clock import Clock
from services.common.requests.page_tokens import read_page_token, write_page_token
from services.results.leaderboard.closed_run import BenchmarkFigure, ClosedRun
from services.results.leaderboard.leaderboard import LeaderboardEntry
from services.results.leaderboard.ports import HistoryKey, HistoryRange, HistoryStore, HistoryTotals
from services.results.statistics.metric_names import UnknownMetric, metric_named

# The name of the list in its page tokens.
_LIST = "history"

DEFAULT_DAYS = 30
MAX_PER_PAGE = 500
DEFAULT_PER_PAGE = 100
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# After every run: a first page begins here. The largest moment that both Python and Postgres know.
NEWEST: HistoryKey = (datetime.max.replace(tzinfo=UTC), str(uuid.UUID(int=2**128 - 1)))


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """The history of a model, a benchmark, or all where these are empty. Numbers of 0 mean the defaults."""

    model: str = ""
    benchmark: str = ""
    metric: str = ""
    days: int = 0
    page_size: int = 0
    page_token: str = ""
    kind: RunKind | None = None
    state: RunState | None = None
    includes_totals: bool = False


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """No token on the last page; `total` counts over all pages, to 1,001; no totals unless asked for."""

    entries: list[LeaderboardEntry]
    total: int
    next_page_token: str = ""
    totals: HistoryTotals | None = None


@dataclass(frozen=True, slots=True)
class ListHistory:
    history: HistoryStore
    clock: Clock

    async def list_page(self, query: HistoryQuery) -> HistoryPage:
        page_size = checked_number(
            "page_size", query.page_size, maximum=MAX_PER_PAGE, default=DEFAULT_PER_PAGE
        )
        days = checked_number("days", query.days, maximum=MAX_HISTORY_DAYS, default=DEFAULT_DAYS)
        since = self.clock.now() - timedelta(days=days)
        # One more than is listed: it shows whether there is a next page.
        page = HistoryRange(
            benchmark=query.benchmark,
            model=query.model,
            since=since,
            after=read_history_token(query.page_token),
            page_size=page_size + 1,
            kind=query.kind,
            state=query.state,
        )
        runs = await self.history.page(page)
        _check_metric(query.metric, runs)
        listed = [_entry(run, query.metric) for run in runs[:page_size]]
        token = write_history_token(runs[page_size - 1]) if len(runs) > page_size else ""
        if query.includes_totals or query.state:
            totals = await self.history.totals(page)
            return HistoryPage(listed, totals.runs, token, totals if query.includes_totals else None)
        return HistoryPage(listed, await self.history.count(page), token)

    async def list_closed(self, run_ids: Sequence[str], metric: str) -> list[LeaderboardEntry]:
        """Those of some runs that are closed, without a figure where a run has none of the metric."""
        return [_entry(run, metric) for run in await self.history.runs(run_ids)]


def _check_metric(word: str, runs: Sequence[ClosedRun]) -> None:
    """Raises UnknownMetric for a metric that none of the runs has; without runs no metric is known."""
    metrics = {metric for run in runs for metric in run.result.figures}
    named = {metric_named(word, list(run.result.figures), run.result.headline) for run in runs}
    if word and metrics and named == {None}:
        raise UnknownMetric(metric=word, supported=", ".join(sorted(metrics)))


def _entry(run: ClosedRun, word: str) -> LeaderboardEntry:
    """An entry, without a figure where the run has none of the metric."""
    figures = run.result.figures
    metric = metric_named(word, list(figures), run.result.headline)
    return LeaderboardEntry(run.model, metric or word, figures[metric] if metric else BenchmarkFigure(), run)


def write_history_token(run: ClosedRun) -> str:
    """The token of the page after a run."""
    microseconds = (run.closed_at - EPOCH) // timedelta(microseconds=1)
    return write_page_token(_LIST, microseconds, run.run_id)


def read_history_token(token: str) -> HistoryKey:
    """The key in a token, or the newest one where there is no token."""
    return read_page_token(_LIST, token, _history_key) if token else NEWEST


def _history_key(parts: list[str]) -> HistoryKey:
    microseconds, run_id = parts
    return EPOCH + timedelta(microseconds=int(microseconds)), str(uuid.UUID(run_id))
