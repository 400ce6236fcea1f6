"""The overview: averages and a trend over the last days, and the newest runs; the same as CSV and JSON.

It counts completed runs of suites, or of the chosen suite.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, WebSocket
from starlette.responses import Response

from proctor.v1 import run_pb2
from proctor.v1.leaderboard_service_pb2 import (
    ListClosedRunsRequest,
    ListHistoryRequest,
    ListHistoryResponse,
)
from services.common.errors import DomainError, ErrorKind
from services.gateway.auth.identity import Now
from services.gateway.backends.calls import Results, ResultsCalls, SchedulerCalls
from services.gateway.pages.filters import MAIN_METRICS, filter_options
from services.gateway.pages.live.views import PartAddress, PushedView, push_view
from services.gateway.pages.overview.view import (
    MAX_ROWS,
    OverviewView,
    RecentResult,
    ScoredRun,
    Spent,
    points_of,
    rows_of,
)
from services.gateway.pages.page import PageOf
from services.gateway.pages.rows.closed_runs import closed_run
from services.gateway.pages.rows.figure import Figure
from services.gateway.pages.rows.runs import newest_runs
from services.gateway.pages.table_files import FileForm, each_of, streamed_file

# Points of a chart that can still be read.
_MAX_SHOWN = 500
_RECENT = 8
# Bounds an export to 50,000 runs.
_MAX_PAGES = 100
_DAYS = 30
_COLUMNS = ("run_id", "model", "benchmark", "closed_at", "score", "ci_low", "ci_high")
_NUMBERS = {"score", "ci_low", "ci_high"}

router = APIRouter(include_in_schema=False)


class Filters:
    """The filters of the overview, as its address has them; what is not understood is ignored."""

    def __init__(self, suite: str = "", metric: str = "", days: str = "") -> None:
        self.suite, self.metric = suite[:128], metric[:64]
        # Long numbers are not parsed: `int` raises beyond 4300 digits.
        self.days = min(max(int(days), 1), 90) if days.isdecimal() and len(days) < 4 else _DAYS

    def named(self) -> dict[str, str]:
        named = {
            "suite": self.suite,
            "metric": self.metric,
            "days": "" if self.days == _DAYS else str(self.days),
        }
        return {name: value for name, value in named.items() if value}


FiltersOf = Annotated[Filters, Depends()]


@router.get("/")
async def show_overview(
    page: PageOf, scheduler: SchedulerCalls, results: ResultsCalls, now: Now, filters: FiltersOf
) -> Response:
    (rows, recent, history, fault), spent, runs, options = await asyncio.gather(
        _found(results, filters),
        _spent(results, filters),
        newest_runs(scheduler, now, suite=filters.suite),
        filter_options(scheduler, filters.named()),
    )
    view = OverviewView(
        points=points_of(history),
        rows=rows,
        recent=recent,
        spent=spent,
        total=history.total,
        is_whole=not history.next_page_token,
        metric=filters.metric or MAIN_METRICS[0],
        newest=runs,
        path="/",
        filters=options.filters,
        options=options,
        days=filters.days,
        now=now,
        fault=fault,
    )
    status = 422 if fault else 200
    response = page.show("overview/overview", view, part="overview/overview_part", status=status)
    if page.is_part and not page.is_at(view.link()):
        response.headers["HX-Push-Url"] = view.link()
    return response


@router.websocket("/socket")
async def watch_newest(
    socket: WebSocket, suite: Annotated[str, Query(max_length=128)] = "", build: str = ""
) -> None:
    """Pushes the newest runs; `build` is the digest of the files that the page was made with."""
    state = socket.app.state

    async def read() -> PushedView:
        return PushedView(await newest_runs(state.scheduler, state.clock.now(), suite=suite))

    await push_view(socket, build, PartAddress("runs/newest_part", urlencode({"suite": suite})), read)


@router.get("/export.{form}")
async def export_history(results: ResultsCalls, filters: FiltersOf, form: FileForm) -> Response:
    points = await _all_points(results, filters)
    records = each_of([*_record(point).values()] for point in points)
    return await streamed_file("runs", form, _COLUMNS, records, numbers=_NUMBERS)


async def _found(
    results: Results, filters: Filters
) -> tuple[Sequence[ScoredRun], Sequence[RecentResult], ListHistoryResponse, str]:
    """The newest runs, and the first of them in full; or none and why the filters are refused."""
    try:
        history = await results.leaderboard.ListHistory(_request(filters))
    except DomainError as error:
        if error.kind is not ErrorKind.INVALID:
            raise
        return (), (), ListHistoryResponse(), error.message
    rows = rows_of(history, MAX_ROWS)
    return rows, await _recent(results, rows[:_RECENT]), history, ""


async def _recent(results: Results, newest: Sequence[ScoredRun]) -> Sequence[RecentResult]:
    ids = [each.job_id for each in newest]
    if not ids:
        return ()
    accuracies, f1s = await asyncio.gather(*(_figures(results, ids, metric) for metric in ("accuracy", "f1")))
    none = Figure()
    return [
        RecentResult(each, accuracies.get(each.job_id, none), f1s.get(each.job_id, none)) for each in newest
    ]


async def _figures(results: Results, run_ids: Sequence[str], metric: str) -> Mapping[str, Figure]:
    closed = await results.leaderboard.ListClosedRuns(ListClosedRunsRequest(run_ids=run_ids, metric=metric))
    return {each.run_id: closed_run(each).figure for each in closed.entries}


async def _spent(results: Results, filters: Filters) -> Spent:
    """Of runs of every kind and state: those that failed cost too."""
    request = ListHistoryRequest(
        benchmark=filters.suite, days=filters.days, page_size=1, includes_totals=True
    )
    totals = (await results.leaderboard.ListHistory(request)).totals
    return Spent(totals.cost, totals.priced_runs, totals.currency)


async def _all_points(results: Results, filters: Filters) -> list[ScoredRun]:
    """All runs that match, up to 50,000."""
    request, points = _request(filters), list[ScoredRun]()
    for _ in range(_MAX_PAGES):
        history = await results.leaderboard.ListHistory(request)
        points += rows_of(history)
        request.page_token = history.next_page_token
        if not request.page_token:
            break
    return points


def _request(filters: Filters) -> ListHistoryRequest:
    return ListHistoryRequest(
        benchmark=filters.suite,
        days=filters.days,
        metric=filters.metric,
        page_size=_MAX_SHOWN,
        state=run_pb2.RUN_STATE_COMPLETED,
        kind=run_pb2.RUN_KIND_UNSPECIFIED if filters.suite else run_pb2.RUN_KIND_SUITE,
    )


def _record(point: ScoredRun) -> dict[str, str | float | None]:
    return {
        "run_id": point.job_id,
        "model": point.model,
        "benchmark": point.benchmark,
        "closed_at": point.completed_at.isoformat(),
        "score": point.score,
        "ci_low": point.figure.ci_low,
        "ci_high": point.figure.ci_high,
    }
