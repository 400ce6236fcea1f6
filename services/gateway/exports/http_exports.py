"""A run as a file over HTTP: what results send passes on, as fast as the client takes it."""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from proctor.v1 import export_service_pb2 as export_pb2
from services.gateway.grpc_results import ResultsBackend
from services.gateway.http_paths import BENCHMARKING
from services.gateway.http_problem_bodies import Described, problems
from services.gateway.runs.http_job_id import JobId

Format = Literal["csv", "json", "jsonl", "parquet", "html", "lm_eval"]
_FORMATS: dict[Format, export_pb2.ExportFormat.ValueType] = {
    "csv": export_pb2.EXPORT_FORMAT_CSV,
    "json": export_pb2.EXPORT_FORMAT_JSON,
    "jsonl": export_pb2.EXPORT_FORMAT_JSONL,
    "parquet": export_pb2.EXPORT_FORMAT_PARQUET,
    "html": export_pb2.EXPORT_FORMAT_HTML,
    "lm_eval": export_pb2.EXPORT_FORMAT_LM_EVAL,
}
_UNSAFE_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_FILE: Described = {200: {"description": "The file", "content": {"application/octet-stream": {}}}}


class ExportApi:
    """The handler, with what it asks."""

    def __init__(self, results: ResultsBackend) -> None:
        self._results = results

    def router(self) -> APIRouter:
        router = APIRouter(prefix=BENCHMARKING, tags=["benchmarks"])
        router.get(
            "/results/{job_id}/export",
            response_class=StreamingResponse,
            responses=_FILE | problems(400, 404, 409, 422, 503),
            summary="A run as a file",
        )(self.export)
        return router

    async def export(
        self,
        job_id: JobId,
        form: Annotated[Format, Query(alias="format")] = "csv",
        task: Annotated[
            str, Query(description="Only this task; needed for lm_eval where there are several")
        ] = "",
    ) -> StreamingResponse:
        request = export_pb2.ExportRunRequest(run_id=job_id, format=_FORMATS[form], task=task)
        pieces = self._results.export_run(request)
        # Taken before the answer begins, so that a refusal is a problem and not a broken file.
        first = await anext(pieces, export_pb2.ExportRunResponse())
        name = _UNSAFE_IN_NAMES.sub("_", first.file_name or f"{job_id}.{form}")
        return StreamingResponse(
            _bytes(first, pieces),
            media_type=first.media_type or "application/octet-stream",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )


async def _bytes(
    first: export_pb2.ExportRunResponse, others: AsyncGenerator[export_pb2.ExportRunResponse]
) -> AsyncIterator[bytes]:
    async with aclosing(others):
        if first.data:
            yield first.data
        async for piece in others:
            yield piece.data
