"""A run as a file. Only files that cannot change have an ETag and can be resumed.

A byte range needs the length of the file: results computes it once and remembers it.
"""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from proctor.v1 import export_service_pb2 as export_pb2
from proctor.wire.enums import value_of
from services.gateway.backends.calls import Results, ResultsCalls
from services.gateway.http.downloads import (
    ContentConditions,
    Download,
    FileHeaders,
    attachment,
    begin,
    byte_range,
    file_response,
)
from services.gateway.http.parameters import JobId
from services.gateway.http.paths import BENCHMARKING
from services.gateway.http.problem import Described, problems

ExportFormatName = Literal[
    "csv",
    "json",
    "jsonl",
    "parquet",
    "html",
    "lm_eval",
    "every_eval",
    "every_eval_samples",
    "model_card",
    "card",
]
_MEDIA_TYPES = (
    "text/csv",
    "application/json",
    "application/jsonl",
    "application/vnd.apache.parquet",
    "text/html",
    "text/markdown",
)
_FILE: Described = {
    200: {"description": "The file", "content": {each: {} for each in _MEDIA_TYPES}},
    206: {
        "description": "The requested range, of the CSV or JSONL of a frozen run",
        "content": {each: {} for each in _MEDIA_TYPES},
    },
    304: {"description": "The client has the file"},
}
FILE_RESPONSES = _FILE | problems(416)
# Beside the page of answers in JSON.
_ANSWERS: dict[str, object] = {"text/csv": {}, "application/jsonl": {}}
_ANSWER_FILE: Described = {
    200: {"description": "A page, or the file", "content": _ANSWERS},
    206: {"description": "The requested range of the file of a frozen run", "content": _ANSWERS},
    304: {"description": "The client has the file"},
}
ANSWER_FILE_RESPONSES = _ANSWER_FILE | problems(416)
# The report is one file that holds texts of models: its own styles apply, and nothing in it runs, is sent or
# is fetched, nor does it count as a page of this origin.
_REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
RunFile = Download[export_pb2.ExportRunResponse]

router = APIRouter(prefix=BENCHMARKING, tags=["benchmarks"])


def _csv_safe(
    *,
    csv_safe: Annotated[
        bool | None,
        Query(
            description="Put an apostrophe before texts of a CSV file that spreadsheets run as formulas; "
            "by default for browsers only"
        ),
    ] = None,
    sec_fetch_mode: Annotated[str, Header(include_in_schema=False)] = "",
    user_agent: Annotated[str, Header(include_in_schema=False)] = "",
) -> bool:
    """A spreadsheet opens what a browser downloads; programs read the texts as they are."""
    # Over plain HTTP browsers send no Sec-Fetch-Mode.
    is_browser = bool(sec_fetch_mode) or user_agent.startswith("Mozilla/")
    return is_browser if csv_safe is None else csv_safe


CsvSafe = Annotated[bool, Depends(_csv_safe)]


@router.get(
    "/results/{job_id}/export",
    response_class=StreamingResponse,
    responses=FILE_RESPONSES | problems(400, 404, 409, 422, 503),
    summary="A run as a file",
)
async def export(
    *,
    results: ResultsCalls,
    job_id: JobId,
    conditions: Annotated[ContentConditions, Depends()],
    csv_safe: CsvSafe,
    form: Annotated[ExportFormatName, Query(alias="format")] = "csv",
    task: Annotated[str, Query(description="Only this task; required for lm_eval if there are several")] = "",
    download: Annotated[
        bool, Query(description="Save the HTML report as a file; by default a browser opens it as a page")
    ] = False,
) -> Response:
    request = whole_run(job_id, form, csv_safe=csv_safe)
    request.task = task
    return await export_run(results, request, conditions, is_shown=form == "html" and not download)


def whole_run(run_id: str, form: ExportFormatName, *, csv_safe: bool) -> export_pb2.ExportRunRequest:
    chosen = value_of(export_pb2.ExportFormat, form)
    return export_pb2.ExportRunRequest(run_id=run_id, format=chosen, is_csv_safe=csv_safe)


async def export_run(
    results: Results,
    request: export_pb2.ExportRunRequest,
    conditions: ContentConditions,
    *,
    is_shown: bool = False,
) -> Response:
    """A browser opens what `is_shown` as a page.

    Raises 416 for a range outside the file, and 409 if the file changes meanwhile.
    """
    # Results reads the whole run to compute the size of its file.
    request.includes_total = bool(conditions.range)
    whole = await _begin(results, request)
    try:
        tag, total = _tag(whole), _total_bytes(whole)
        if conditions.has(tag):
            await whole.close()
            return Response(status_code=304, headers={"ETag": tag} if tag else {})
        wanted = conditions.range_of(tag) if tag and total is not None else ""
        requested = byte_range(wanted, total or 0)
        download = await _begin_at(results, request, whole, requested.first) if requested else whole
    # Also when the client has gone: an open download holds a call to results.
    except BaseException:
        await whole.close()
        raise
    head = download.head
    headers = FileHeaders(
        attachment(head.file_name or "export", is_ascii=True, is_shown=is_shown),
        head.media_type or "application/octet-stream",
        tag,
        _total_bytes(download),
        _REPORT_POLICY if is_shown else "",
    )
    return file_response(download, headers, requested)


async def _begin(results: Results, request: export_pb2.ExportRunRequest) -> RunFile:
    """Computing the size of a file delays its first chunk."""
    is_measured = request.includes_total or request.first_byte
    timeout = results.long_call_seconds if is_measured else None
    chunks = results.exports.ExportRun(request, timeout=timeout)
    return await begin(chunks, export_pb2.ExportRunResponse())


async def _begin_at(
    results: Results, request: export_pb2.ExportRunRequest, whole: RunFile, first_byte: int
) -> RunFile:
    # The file from its first byte is under way already.
    if not first_byte:
        return whole
    await whole.close()
    request.first_byte = first_byte
    download = await _begin(results, request)
    # The run was retried between the two calls: these are bytes of another file.
    if _tag(download) != _tag(whole):
        await download.close()
        raise HTTPException(409, "The file has changed since; ask for it without a range.")
    return download


def _tag(download: RunFile) -> str:
    return f'"{download.head.content_tag}"' if download.head.content_tag else ""


def _total_bytes(download: RunFile) -> int | None:
    return download.head.total_bytes if download.head.HasField("total_bytes") else None
