"""Runs over data sets: order, list, look, read, stop, delete. Each handler converts, calls, converts back."""

import uuid
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Query
from starlette.requests import Request
from starlette.responses import Response

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.common.clock import Clock
from services.common.errors import RemoteError
from services.gateway.api.dataset_runs.dataset_run import (
    dataset_run_listed,
    dataset_run_shown,
    dataset_run_started,
    found_dataset_run,
)
from services.gateway.api.dataset_runs.requests import (
    AnswerFilter,
    AnswerPage,
    DatasetRunRequest,
    DatasetRunsQuery,
    outcomes_wanted,
    refuse_chosen,
)
from services.gateway.api.dataset_runs.rows import dataset_run_results
from services.gateway.api.dataset_runs.schemas import (
    DatasetRunMessage,
    DatasetRunPage,
    DatasetRunResults,
    DatasetRunShown,
    DatasetRunStarted,
)
from services.gateway.api.exports.routes import FILE_RESPONSES, ExportApi, Format
from services.gateway.auth.identity import Identity
from services.gateway.backends.results import ResultsBackend
from services.gateway.backends.scheduler import SchedulerBackend
from services.gateway.errors.api_errors import in_words_of_rest
from services.gateway.errors.http_problem import problems
from services.gateway.errors.run_ids import benchmark_id
from services.gateway.http.downloads import ContentConditions
from services.gateway.http.path_ids import BenchmarkRunId
from services.gateway.paths import DATASET_RUNS

RequestKey = Annotated[
    uuid.UUID | None, Header(alias="Idempotency-Key", description="The same again finds the run of the first")
]
Form = Annotated[
    Literal["json", "jsonl", "csv"],
    Query(alias="format", description="A page as JSON; jsonl and csv are files with all answers"),
]


class DatasetRunApi:
    """The handlers, with what they ask."""

    def __init__(
        self,
        scheduler: SchedulerBackend,
        results: ResultsBackend,
        exports: ExportApi,
        identity: Identity,
        clock: Clock,
    ) -> None:
        self._scheduler = scheduler
        self._results = results
        self._exports = exports
        self._identity = identity
        self._clock = clock

    def router(self) -> APIRouter:
        router = APIRouter(prefix=DATASET_RUNS, tags=["dataset runs"])
        one, change = problems(404, 422, 503), problems(404, 409, 422, 503)
        router.post(
            "/run", responses=problems(400, 404, 409, 422, 503), summary="Run a model over a data set"
        )(self.start)
        router.get("", responses=problems(400, 422, 503), summary="List runs over data sets, newest first")(
            self.list_runs
        )
        router.get("/{benchmark_id}", responses=one, summary="One of them, with its figures so far")(
            self.show
        )
        router.get(
            "/{benchmark_id}/results",
            responses=problems(400, 404, 409, 422, 503),
            response_model=DatasetRunResults,
            summary="Answers row by row, in the order of the data set",
        )(self.results)
        router.get(
            "/{benchmark_id}/export",
            responses=FILE_RESPONSES | problems(400, 404, 409, 422, 503),
            response_class=Response,
            summary="All answers as a file",
        )(self.export)
        router.post("/{benchmark_id}/cancel", responses=change, summary="Cancel it; what it has stays")(
            self.cancel
        )
        router.post("/{benchmark_id}/pause", responses=change, summary="Pause it")(self.pause)
        router.post("/{benchmark_id}/resume", responses=change, summary="Let it go on")(self.resume)
        router.post("/{benchmark_id}/retry", responses=change, summary="Ask again for what is missing")(
            self.retry
        )
        router.delete(
            "/{benchmark_id}", responses=change, summary="Delete one that is over, with its answers"
        )(self.delete)
        return router

    async def start(
        self, body: DatasetRunRequest, request: Request, request_key: RequestKey = None
    ) -> DatasetRunStarted:
        response = await self._scheduler.submit_run(
            scheduler_pb2.SubmitRunRequest(
                order=body.to_order(),
                user=await self._identity.user(request),
                request_id=str(request_key or uuid.uuid4()),
            )
        )
        return dataset_run_started(response)

    async def list_runs(self, query: Annotated[DatasetRunsQuery, Depends()]) -> DatasetRunPage:
        page = await self._scheduler.list_runs(query.request)
        now = self._clock.now()
        return DatasetRunPage(
            benchmarks=[dataset_run_listed(run, now) for run in page.runs],
            total=page.total,
            next_cursor=page.next_page_token or None,
        )

    async def show(self, run_id: BenchmarkRunId) -> DatasetRunShown:
        run = await self._run(run_id)
        return dataset_run_shown(run, await self._results.summary_so_far(run_id), self._clock.now())

    async def results(
        self,
        run_id: BenchmarkRunId,
        chosen: Annotated[AnswerFilter, Depends()],
        page: Annotated[AnswerPage, Depends()],
        conditions: Annotated[ContentConditions, Depends()],
        form: Form = "json",
    ) -> Response:
        if form != "json":
            refuse_chosen(chosen, page)
            return await self.export(run_id, conditions, form)
        run = await self._run(run_id)
        try:
            outcomes = await self._results.outcomes_so_far(outcomes_wanted(run_id, chosen, page))
        except RemoteError as error:
            raise in_words_of_rest(error) from error
        results = dataset_run_results(run, outcomes, self._clock.now())
        # A page may be heavy: it is not checked once more, as FastAPI would.
        return Response(results.model_dump_json(), media_type="application/json")

    async def export(
        self,
        run_id: BenchmarkRunId,
        conditions: Annotated[ContentConditions, Depends()],
        form: Annotated[Format, Query(alias="format")] = "jsonl",
    ) -> Response:
        await self._run(run_id)
        return await self._exports.export(run_id, conditions, form)

    async def cancel(self, run_id: BenchmarkRunId) -> DatasetRunMessage:
        await self._run(run_id)
        await self._scheduler.cancel_run(run_id)
        return _told(run_id, "cancelled; what it has stays")

    async def pause(self, run_id: BenchmarkRunId) -> DatasetRunMessage:
        await self._run(run_id)
        await self._scheduler.pause_run(run_id)
        return _told(run_id, "paused")

    async def resume(self, run_id: BenchmarkRunId) -> DatasetRunMessage:
        await self._run(run_id)
        await self._scheduler.resume_run(run_id)
        return _told(run_id, "waits for its turn to go on")

    async def retry(self, run_id: BenchmarkRunId) -> DatasetRunMessage:
        await self._run(run_id)
        await self._scheduler.retry_run(run_id)
        return _told(run_id, "waits to be run again for what is missing")

    async def delete(self, run_id: BenchmarkRunId) -> DatasetRunMessage:
        await self._run(run_id)
        await self._scheduler.delete_run(run_id)
        return _told(run_id, "deleted, with its answers")

    async def _run(self, run_id: str) -> run_pb2.Run:
        return await found_dataset_run(self._scheduler, run_id)


def _told(run_id: str, what: str) -> DatasetRunMessage:
    shown = benchmark_id(run_id)
    return DatasetRunMessage(benchmark_id=shown, message=f"Benchmark {shown} {what}")
