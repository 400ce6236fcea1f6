"""The list of runs as a file: all that match its filters, or those that were chosen."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.common.requests.request_fields import MAX_PAGE_SIZE
from services.gateway.auth.identity import Now
from services.gateway.backends.calls import BackendCalls, Backends
from services.gateway.pages.runs.listed_runs import ListedRun, listed_runs, parameters_text
from services.gateway.pages.runs.reads import RunFilters, closed_runs, list_request
from services.gateway.pages.table_files import FileForm, Value, streamed_file

_COLUMNS = (
    "run_id",
    "name",
    "tags",
    "note",
    "model",
    "benchmark",
    "state",
    "metric",
    "score",
    "ci_low",
    "ci_high",
    "limit",
    "parameters",
    "answered",
    "failed",
    "unparsed_share",
    "seconds",
    "cost",
    "currency",
    "user",
    "project_id",
    "created_at",
    "finished_at",
)
_NUMBERS = {
    *("score", "ci_low", "ci_high", "limit", "answered", "failed", "unparsed_share", "seconds", "cost"),
    "project_id",
}

router = APIRouter(prefix="/runs", include_in_schema=False)


@router.get("/export.{form}")
async def export(
    backends: BackendCalls,
    now: Now,
    filters: RunFilters,
    form: FileForm,
    run: Annotated[list[str] | None, Query(max_length=MAX_PAGE_SIZE)] = None,
) -> Response:
    """`run` are those that were chosen; without any all that match."""
    request = await list_request(backends.scheduler, filters)
    request.run_ids.extend(run or ())
    request.page_size, request.page_token = MAX_PAGE_SIZE, ""
    records = _records(backends, request, filters["metric"], now)
    return await streamed_file("runs", form, _COLUMNS, records, numbers=_NUMBERS)


async def _records(
    backends: Backends, request: scheduler_pb2.ListRunsRequest, metric: str, now: datetime
) -> AsyncGenerator[Sequence[Value]]:
    while True:
        found = await backends.scheduler.runs.ListRuns(request)
        closed = await closed_runs(backends.results, found.runs, metric)
        for run, row in zip(found.runs, listed_runs(found.runs, closed, now), strict=True):
            yield _record(row, parameters_text(run))
        request.page_token = found.next_page_token
        if not request.page_token:
            return


def _record(row: ListedRun, parameters: str) -> Sequence[Value]:
    figure = row.figure
    return (
        row.job_id,
        row.name,
        ", ".join(row.tags),
        row.note,
        row.model,
        row.benchmark,
        row.status,
        figure.metric,
        figure.mean,
        figure.ci_low,
        figure.ci_high,
        row.limit,
        parameters,
        row.answered,
        row.failed,
        row.unparsed_share,
        row.ran_seconds,
        row.cost,
        row.currency,
        row.user,
        row.project_id,
        row.created_at.isoformat() if row.created_at else None,
        row.finished_at.isoformat() if row.finished_at else None,
    )
