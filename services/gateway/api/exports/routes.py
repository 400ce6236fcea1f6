"""A run as a file over HTTP: what results send passes on, as fast as the client takes it."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import StreamingResponse

from proctor.v1 import export_service_pb2 as export_pb2
from services.gateway.api.exports.exported_file import exported_file
from services.gateway.backends.results import ResultsBackend
from services.gateway.errors.http_problem import Described, problems
from services.gateway.http.downloads import ContentConditions
from services.gateway.http.path_ids import JobId
from services.gateway.paths import BENCHMARKING

Format = Literal["csv", "json", "jsonl", "parquet", "html", "lm_eval"]
_FORMATS: dict[Format, export_pb2.ExportFormat.ValueType] = {
    "csv": export_pb2.EXPORT_FORMAT_CSV,
    "json": export_pb2.EXPORT_FORMAT_JSON,
    "jsonl": export_pb2.EXPORT_FORMAT_JSONL,
    "parquet": export_pb2.EXPORT_FORMAT_PARQUET,
    "html": export_pb2.EXPORT_FORMAT_HTML,
    "lm_eval": export_pb2.EXPORT_FORMAT_LM_EVAL,
}
FILE_RESPONSES: Described = {
    200: {"description": "The file", "content": {"application/octet-stream": {}}},
    206: {"description": "The range that was asked for, of the CSV or JSONL of a run that is finished"},
    304: {"description": "The client has it"},
    416: {"description": "The file has no such range"},
}


class ExportApi:
    """The handler, with what it asks."""

    def __init__(self, results: ResultsBackend) -> None:
        self._results = results

    def router(self) -> APIRouter:
        router = APIRouter(prefix=BENCHMARKING, tags=["benchmarks"])
        router.get(
            "/results/{job_id}/export",
            response_class=StreamingResponse,
            responses=FILE_RESPONSES | problems(400, 404, 409, 422, 503),
            summary="A run as a file",
        )(self.export)
        return router

    async def export(
        self,
        job_id: JobId,
        conditions: Annotated[ContentConditions, Depends()],
        form: Annotated[Format, Query(alias="format")] = "csv",
        task: Annotated[
            str, Query(description="Only this task; needed for lm_eval where there are several")
        ] = "",
    ) -> Response:
        request = export_pb2.ExportRunRequest(run_id=job_id, format=_FORMATS[form], task=task)
        return await exported_file(self._results, request, conditions)
