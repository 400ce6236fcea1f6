"""Answers of several runs side by side, and golden answers: mark, unmark and export."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse
from starlette.requests import Request

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import run_pb2
from services.common.errors import ErrorKind, RemoteError
from services.gateway.api.answers.schemas import AnswersNamed, GoldenCount, SideBySide, side_by_side
from services.gateway.api.dataset_runs.dataset_run import get_dataset_run
from services.gateway.api.dataset_runs.requests import WithoutStatus
from services.gateway.auth.identity import Identity
from services.gateway.backends.backends import Results, Scheduler
from services.gateway.errors.api_errors import with_parameter_names
from services.gateway.errors.gateway_errors import DatasetRunNotPlanned, EmptyId
from services.gateway.errors.http_problem import Described, problems
from services.gateway.errors.run_ids import benchmark_id, run_id_of
from services.gateway.http.downloads import FileHeaders, attachment, begin, file_response
from services.gateway.http.fields import Text
from services.gateway.http.path_ids import BenchmarkRunId
from services.gateway.http.presentation import numbers
from services.gateway.paths import DATASET_RUNS

_MAX_IDS_CHARACTERS = 1024
_FORMS = numbers(export_pb2.GoldenForm)
_FILE: Described = {200: {"description": "The file", "content": {"application/jsonl": {}}}}

Ids = Annotated[Text, Query(max_length=_MAX_IDS_CHARACTERS, description='"bm_…,bm_…", up to 6')]


class AnswerApi:
    """The handlers and their backends."""

    def __init__(self, scheduler: Scheduler, results: Results, identity: Identity) -> None:
        self._scheduler = scheduler
        self._results = results
        self._identity = identity

    def router(self) -> APIRouter:
        """Include it before the router of the runs, whose ids match any word."""
        router = APIRouter(prefix=DATASET_RUNS, tags=["answers"])
        router.get(
            "/side-by-side",
            responses=problems(400, 404, 409, 422, 503),
            summary="Answers of two to six runs to the same rows",
        )(self.side_by_side)
        router.get(
            "/golden/export",
            response_class=StreamingResponse,
            responses=_FILE | problems(404, 409, 422, 503),
            summary="Golden answers as training or test data, one JSON object per line",
        )(self.export_golden)
        path, errors = "/{benchmark_id}/golden", problems(404, 409, 422, 503)
        router.put(path, responses=errors, summary="Mark answers as golden, all or none")(self.mark)
        router.delete(path, responses=errors, summary="Remove marks, all or none")(self.unmark)
        return router

    async def side_by_side(
        self,
        ids: Ids,
        chosen: Annotated[WithoutStatus, Depends()],
        *,
        differing: Annotated[bool, Query(description="Only rows whose answers differ")] = False,
        limit: Annotated[int, Query(ge=1, le=200, description="A page of large rows has fewer")] = 20,
        cursor: Annotated[Text, Query(description="next_cursor of the previous page")] = "",
    ) -> SideBySide:
        runs = await self._runs(ids)
        request = answer_pb2.ListSideBySideRequest(
            run_ids=[run.run_id for run in runs],
            only_differing=differing,
            filter=chosen.filter if chosen.is_set else None,
            page_size=limit,
            page_token=cursor,
        )
        try:
            page = await self._results.answers.ListSideBySide(request)
        except RemoteError as error:
            raise _translated(error, runs) from error
        return side_by_side(runs, page)

    async def export_golden(self, ids: Ids, form: Literal["training", "test"]) -> StreamingResponse:
        runs = await self._runs(ids)
        chunks = self._results.exports.ExportGoldenAnswers(
            export_pb2.ExportGoldenAnswersRequest(run_ids=[run.run_id for run in runs], form=_FORMS[form])
        )
        try:
            download = await begin(chunks, export_pb2.ExportGoldenAnswersResponse())
        except RemoteError as error:
            raise _translated(error, runs) from error
        name = attachment(f"golden_{form}.jsonl", is_ascii=True)
        return file_response(download, FileHeaders(name, "application/jsonl"))

    async def mark(self, run_id: BenchmarkRunId, named: AnswersNamed, request: Request) -> GoldenCount:
        return await self._mark(run_id, named, request, is_golden=True)

    async def unmark(self, run_id: BenchmarkRunId, named: AnswersNamed, request: Request) -> GoldenCount:
        return await self._mark(run_id, named, request, is_golden=False)

    async def _mark(
        self, run_id: str, named: AnswersNamed, request: Request, *, is_golden: bool
    ) -> GoldenCount:
        run = await get_dataset_run(self._scheduler, run_id)
        marks = answer_pb2.MarkAnswersRequest(
            run_id=run_id,
            answers=[answer.to_proto() for answer in named.answers],
            is_golden=is_golden,
            user=await self._identity.user(request),
        )
        try:
            marked = await self._results.answers.MarkAnswers(marks)
        except RemoteError as error:
            raise _translated(error, [run]) from error
        return GoldenCount(benchmark_id=benchmark_id(run_id), golden=marked.golden_count)

    async def _runs(self, ids: str) -> list[run_pb2.Run]:
        named = [given.strip() for given in ids.split(",")]
        if "" in named:
            raise EmptyId(parameter="ids")
        run_ids = [run_id_of(given) for given in named]
        return await asyncio.gather(*(get_dataset_run(self._scheduler, run_id) for run_id in run_ids))


def _translated(error: RemoteError, runs: Sequence[run_pb2.Run]) -> Exception:
    """Results does not know a run before it is planned."""
    if error.reason != "RUN_NOT_FOUND" or error.kind is not ErrorKind.NOT_FOUND:
        return with_parameter_names(error)
    unknown = [run.run_id for run in runs if run.run_id == error.facts.get("run_id")] or [runs[0].run_id]
    return DatasetRunNotPlanned(benchmark_id=benchmark_id(unknown[0]))
