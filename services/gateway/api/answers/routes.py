"""Answers of runs over data sets side by side, marked as golden, and exported as data."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse
from starlette.requests import Request

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import run_pb2
from services.common.errors import ErrorKind, RemoteError
from services.gateway.api.answers.schemas import AnswersNamed, GoldenCount, SideBySide, side_by_side
from services.gateway.api.dataset_runs.dataset_run import found_dataset_run
from services.gateway.api.dataset_runs.requests import WithoutStatus
from services.gateway.auth.identity import Identity
from services.gateway.backends.results import ResultsBackend
from services.gateway.backends.scheduler import SchedulerBackend
from services.gateway.errors.api_errors import in_words_of_rest
from services.gateway.errors.gateway_errors import DatasetRunNotPlanned, EmptyId
from services.gateway.errors.http_problem import Described, problems
from services.gateway.errors.run_ids import benchmark_id, run_id_of
from services.gateway.http.fields import Text
from services.gateway.http.path_ids import BenchmarkRunId
from services.gateway.paths import DATASET_RUNS

_MOST_IDS_CHARACTERS = 1024
_FORMS: dict[str, export_pb2.GoldenForm.ValueType] = {
    "training": export_pb2.GOLDEN_FORM_TRAINING,
    "test": export_pb2.GOLDEN_FORM_TEST,
}
_FILE: Described = {200: {"description": "The file", "content": {"application/jsonl": {}}}}

Ids = Annotated[Text, Query(max_length=_MOST_IDS_CHARACTERS, description='"bm_…,bm_…", up to 6')]


class AnswerApi:
    """The handlers, with what they ask."""

    def __init__(self, scheduler: SchedulerBackend, results: ResultsBackend, identity: Identity) -> None:
        self._scheduler = scheduler
        self._results = results
        self._identity = identity

    def router(self) -> APIRouter:
        """To be included before that of the runs: an id there may be any word."""
        router = APIRouter(prefix=DATASET_RUNS, tags=["answers"])
        router.get(
            "/side-by-side",
            responses=problems(400, 404, 409, 422, 503),
            summary="What two to six runs answered to the same rows",
        )(self.side_by_side)
        router.get(
            "/golden/export",
            response_class=StreamingResponse,
            responses=_FILE | problems(404, 409, 422, 503),
            summary="Golden answers as training or test data, one JSON object per line",
        )(self.export_golden)
        path, told = "/{benchmark_id}/golden", problems(404, 409, 422, 503)
        router.put(path, responses=told, summary="Mark answers as golden, all or none")(self.mark)
        router.delete(path, responses=told, summary="Take marks off, all or none")(self.unmark)
        return router

    async def side_by_side(
        self,
        ids: Ids,
        chosen: Annotated[WithoutStatus, Depends()],
        *,
        differing: Annotated[bool, Query(description="Only rows to which the answers differ")] = False,
        limit: Annotated[int, Query(ge=1, le=200, description="A page of heavy rows has fewer")] = 20,
        cursor: Annotated[Text, Query(description="next_cursor of the page before")] = "",
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
            page = await self._results.list_side_by_side(request)
        except RemoteError as error:
            raise _told(error, runs) from error
        return side_by_side(runs, page)

    async def export_golden(self, ids: Ids, form: Literal["training", "test"]) -> StreamingResponse:
        runs = await self._runs(ids)
        pieces = self._results.export_golden(
            export_pb2.ExportGoldenAnswersRequest(run_ids=[run.run_id for run in runs], form=_FORMS[form])
        )
        # Taken before the answer begins, so that a refusal is a problem and not a broken file.
        try:
            first = await anext(pieces, export_pb2.ExportGoldenAnswersResponse())
        except RemoteError as error:
            raise _told(error, runs) from error
        return StreamingResponse(
            _bytes(first, pieces),
            media_type="application/jsonl",
            headers={"Content-Disposition": f'attachment; filename="golden_{form}.jsonl"'},
        )

    async def mark(self, run_id: BenchmarkRunId, named: AnswersNamed, request: Request) -> GoldenCount:
        return await self._mark(run_id, named, request, is_golden=True)

    async def unmark(self, run_id: BenchmarkRunId, named: AnswersNamed, request: Request) -> GoldenCount:
        return await self._mark(run_id, named, request, is_golden=False)

    async def _mark(
        self, run_id: str, named: AnswersNamed, request: Request, *, is_golden: bool
    ) -> GoldenCount:
        run = await found_dataset_run(self._scheduler, run_id)
        order = answer_pb2.MarkAnswersRequest(
            run_id=run_id,
            answers=[
                answer_pb2.AnswerKey(sample=one.sample or 0, rollout=one.rollout, row_id=one.custom_id)
                for one in named.answers
            ],
            is_golden=is_golden,
            user=await self._identity.user(request),
        )
        try:
            marked = await self._results.mark_answers(order)
        except RemoteError as error:
            raise _told(error, [run]) from error
        return GoldenCount(benchmark_id=benchmark_id(run_id), golden=marked.golden_count)

    async def _runs(self, ids: str) -> list[run_pb2.Run]:
        named = [given.strip() for given in ids.split(",")]
        if "" in named:
            raise EmptyId(parameter="ids")
        run_ids = [run_id_of(given) for given in named]
        return await asyncio.gather(*(found_dataset_run(self._scheduler, run_id) for run_id in run_ids))


def _told(error: RemoteError, runs: Sequence[run_pb2.Run]) -> Exception:
    """Results know a run from when it was planned."""
    if error.reason != "RUN_NOT_FOUND" or error.kind is not ErrorKind.NOT_FOUND:
        return in_words_of_rest(error)
    unknown = [run.run_id for run in runs if run.run_id == error.facts.get("run_id")] or [runs[0].run_id]
    return DatasetRunNotPlanned(benchmark_id=benchmark_id(unknown[0]))


async def _bytes(
    first: export_pb2.ExportGoldenAnswersResponse,
    others: AsyncGenerator[export_pb2.ExportGoldenAnswersResponse],
) -> AsyncIterator[bytes]:
    async with aclosing(others):
        if first.data:
            yield first.data
        async for piece in others:
            yield piece.data
