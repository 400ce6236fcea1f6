"""The history: closed runs, newest first, with totals; all of them as CSV and JSON."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import JSONResponse, Response

from proctor.v1 import leaderboard_pb2, run_pb2
from proctor.v1.leaderboard_service_pb2 import ListHistoryRequest, ListHistoryResponse
from proctor.values.run import MAX_HISTORY_DAYS
from proctor.wire.enums import value_of
from services.common.errors import DomainError, ErrorKind
from services.gateway.api.models import full_model
from services.gateway.api.runs.requests import kind_number
from services.gateway.auth.identity import Now
from services.gateway.backends.calls import Results, ResultsCalls, Scheduler, SchedulerCalls
from services.gateway.http.api_errors import NO_SUCH_PAGE
from services.gateway.pages.filters import filter_options, ordered_models
from services.gateway.pages.history.view import DAYS, STATES, history_view
from services.gateway.pages.page import PageOf
from services.gateway.pages.rows.closed_runs import closed_run
from services.gateway.pages.table_files import Value, csv_file

_PAGE_SIZE = 100
# Rows of a downloaded file are listed in chunks, each as large as one call may return.
_CHUNK = 500
# 50,000 runs: bounds the time and the length of one download.
_MAX_CHUNKS = 100
_KINDS = ("suite", "dataset")
_COLUMNS = (
    "run_id",
    "model",
    "benchmark",
    "state",
    "metric",
    "score",
    "ci_low",
    "ci_high",
    "answered",
    "failed",
    "closed_at",
)

router = APIRouter(prefix="/history", include_in_schema=False)


@dataclass(frozen=True, slots=True)
class HistoryAddress:
    """Filters as the address has them; what is not understood is ignored, so old links stay valid."""

    model: str = ""
    suite: str = ""
    kind: str = ""
    state: str = ""
    metric: str = ""
    days: str = ""
    after: str = ""

    def named(self) -> dict[str, str]:
        """The filters that are set and understood."""
        is_count = self.days.isdecimal() and len(self.days) < 6
        days = min(max(int(self.days), 1), MAX_HISTORY_DAYS) if is_count else DAYS
        named = {
            "model": self.model.strip()[:512],
            "suite": self.suite[:128],
            "kind": self.kind if self.kind in _KINDS and not self.suite else "",
            "state": self.state if self.state in STATES else "",
            "metric": self.metric[:64],
            "days": "" if days == DAYS else str(days),
            "after": self.after[:512],
        }
        return {name: value for name, value in named.items() if value}


ParametersOf = Annotated[HistoryAddress, Depends()]


@router.get("")
async def show_history(
    page: PageOf, scheduler: SchedulerCalls, results: ResultsCalls, now: Now, parameters: ParametersOf
) -> Response:
    filters = parameters.named()
    (found, fault), options, models = await asyncio.gather(
        _found(scheduler, results, filters), filter_options(scheduler, filters), ordered_models(scheduler)
    )
    view = replace(history_view(found, options, now, fault), models=models)
    response = page.show("history/history", view, part="history/history_part", status=422 if fault else 200)
    if page.is_part:
        response.headers["HX-Push-Url"] = view.link(after=view.get("after"))
    return response


@router.get("/export.csv")
async def export_csv(scheduler: SchedulerCalls, results: ResultsCalls, parameters: ParametersOf) -> Response:
    entries = await _all_entries(scheduler, results, parameters)
    return csv_file("history.csv", _COLUMNS, map(_record, entries))


@router.get("/export.json")
async def export_json(scheduler: SchedulerCalls, results: ResultsCalls, parameters: ParametersOf) -> Response:
    entries = await _all_entries(scheduler, results, parameters)
    return JSONResponse(
        [dict(zip(_COLUMNS, _record(entry), strict=True)) for entry in entries],
        headers={"Content-Disposition": 'attachment; filename="history.json"'},
    )


async def _all_entries(
    scheduler: Scheduler, results: Results, parameters: HistoryAddress
) -> list[leaderboard_pb2.LeaderboardEntry]:
    """All runs that match, up to 50,000."""
    request = await _request(scheduler, parameters.named() | {"after": ""})
    request.page_size = _CHUNK
    entries: list[leaderboard_pb2.LeaderboardEntry] = []
    for _ in range(_MAX_CHUNKS):
        found = await results.leaderboard.ListHistory(request)
        entries += found.entries
        request.page_token = found.next_page_token
        if not request.page_token:
            break
    return entries


async def _found(
    scheduler: Scheduler, results: Results, filters: dict[str, str]
) -> tuple[ListHistoryResponse, str]:
    """A page of the history with its totals, or an empty one and why the filters are refused."""
    try:
        request = await _request(scheduler, filters)
        request.includes_totals = True
        return await results.leaderboard.ListHistory(request), ""
    except DomainError as error:
        # A page of the list that does not exist is not a filter: the page of errors leads to the first one.
        if error.kind is not ErrorKind.INVALID or error.reason == NO_SUCH_PAGE:
            raise
        return ListHistoryResponse(), error.message


async def _request(scheduler: Scheduler, filters: dict[str, str]) -> ListHistoryRequest:
    suite = filters.get("suite", "")
    return ListHistoryRequest(
        model=await full_model(scheduler, filters.get("model", "")),
        benchmark=suite,
        days=int(filters.get("days", DAYS)),
        metric=filters.get("metric", ""),
        page_size=_PAGE_SIZE,
        page_token=filters.get("after", ""),
        kind=kind_number(filters.get("kind", "all"), suite),
        state=value_of(run_pb2.RunState, filters.get("state", ""), unset=""),
    )


def _record(entry: leaderboard_pb2.LeaderboardEntry) -> Iterable[Value]:
    row = closed_run(entry)
    closed_at = row.completed_at.isoformat() if row.completed_at else None
    figure = (row.metric, row.figure.mean, row.figure.ci_low, row.figure.ci_high)
    return (row.job_id, row.model, row.benchmark, row.status, *figure, row.answered, row.failed, closed_at)
