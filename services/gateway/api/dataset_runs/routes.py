"""Runs over data sets: start, list, show, read answers, cancel, pause, resume, retry and delete."""

import uuid
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Query
from starlette.requests import Request
from starlette.responses import Response

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.common.clock import Clock
from services.common.errors import RemoteError
from services.gateway.api.dataset_runs.requests import (
    AnswerFilter,
    AnswerPage,
    DatasetRunRequest,
    DatasetRunsQuery,
    check_unfiltered,
    outcomes_request,
)
from services.gateway.api.dataset_runs.rows import dataset_run_results
from services.gateway.api.dataset_runs.schemas import (
    DatasetRunMessage,
    DatasetRunPage,
    DatasetRunResults,
    DatasetRunShown,
    DatasetRunStarted,
    dataset_run_listed,
    dataset_run_shown,
    dataset_run_started,
    get_dataset_run,
)
from services.gateway.api.exports import FILE_RESPONSES, ExportApi, Format
from services.gateway.auth import Identity
from services.gateway.backends import Results, Scheduler
from services.gateway.errors.api_errors import benchmark_id, with_parameter_names
from services.gateway.errors.http_problem import problems
from services.gateway.http.downloads import ContentConditions
from services.gateway.http.parameters import BenchmarkRunId
from services.gateway.paths import DATASET_RUNS

RequestKey = Annotated[
    uuid.UUID | None,
    Header(alias="Idempotency-Key", description="A repeated call returns the first run"),
]
Form = Annotated[
    Literal["json", "jsonl", "csv"],
    Query(alias="format", description="A page as JSON; jsonl and csv are files with all answers"),
]


class DatasetRunApi:
    """The handlers and their backends."""

    def __init__(
        self,
        scheduler: Scheduler,
        results: Results,
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
        router.get("/{benchmark_id}", responses=one, summary="One run, with its figures so far")(self.show)
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
        router.post("/{benchmark_id}/cancel", responses=change, summary="Cancel it and keep its answers")(
            self.cancel
        )
        router.post("/{benchmark_id}/pause", responses=change, summary="Pause it")(self.pause)
        router.post("/{benchmark_id}/resume", responses=change, summary="Resume it")(self.resume)
        router.post("/{benchmark_id}/retry", responses=change, summary="Retry what is missing or failed")(
            self.retry
        )
        router.delete("/{benchmark_id}", responses=change, summary="Delete a finished run with its answers")(
            self.delete
        )
        return router

    async def start(
        self, body: DatasetRunRequest, request: Request, request_key: RequestKey = None
    ) -> DatasetRunStarted:
        response = await self._scheduler.runs.SubmitRun(
            scheduler_pb2.SubmitRunRequest(
                order=body.to_order(),
                user=await self._identity.user(request),
                request_id=str(request_key or uuid.uuid4()),
            )
        )
        return dataset_run_started(response)

    async def list_runs(self, query: Annotated[DatasetRunsQuery, Depends()]) -> DatasetRunPage:
        page = await self._scheduler.runs.ListRuns(query.request)
        now = self._clock.now()
        return DatasetRunPage(
            benchmarks=[dataset_run_listed(run, now) for run in page.runs],
            total=page.total,
            next_cursor=page.next_page_token or None,
        )

    async def show(self, run_id: BenchmarkRunId) -> DatasetRunShown:
        run = await get_dataset_run(self._scheduler, run_id)
        return dataset_run_shown(run, await self._results.summary(run_id), self._clock.now())

    async def results(
        self,
        run_id: BenchmarkRunId,
        chosen: Annotated[AnswerFilter, Depends()],
        page: Annotated[AnswerPage, Depends()],
        conditions: Annotated[ContentConditions, Depends()],
        form: Form = "json",
    ) -> Response:
        if form != "json":
            check_unfiltered(chosen, page)
            return await self.export(run_id, conditions, form)
        run = await get_dataset_run(self._scheduler, run_id)
        try:
            outcomes = await self._results.recorded_outcomes(outcomes_request(run_id, chosen, page))
        except RemoteError as error:
            raise with_parameter_names(error) from error
        results = dataset_run_results(run, outcomes, self._clock.now())
        # Pages may be large, so FastAPI does not validate them a second time.
        return Response(results.model_dump_json(), media_type="application/json")

    async def export(
        self,
        run_id: BenchmarkRunId,
        conditions: Annotated[ContentConditions, Depends()],
        form: Annotated[Format, Query(alias="format")] = "jsonl",
    ) -> Response:
        await get_dataset_run(self._scheduler, run_id)
        return await self._exports.export(run_id, conditions, form)

    async def cancel(self, run_id: BenchmarkRunId) -> DatasetRunMessage:
        await get_dataset_run(self._scheduler, run_id)
        await self._scheduler.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run_id))
        return _message(run_id, "cancelled; recorded answers are kept")

    async def pause(self, run_id: BenchmarkRunId) -> DatasetRunMessage:
        await get_dataset_run(self._scheduler, run_id)
        await self._scheduler.runs.PauseRun(scheduler_pb2.PauseRunRequest(run_id=run_id))
        return _message(run_id, "paused")

    async def resume(self, run_id: BenchmarkRunId) -> DatasetRunMessage:
        await get_dataset_run(self._scheduler, run_id)
        await self._scheduler.runs.ResumeRun(scheduler_pb2.ResumeRunRequest(run_id=run_id))
        return _message(run_id, "is queued to resume")

    async def retry(self, run_id: BenchmarkRunId) -> DatasetRunMessage:
        await get_dataset_run(self._scheduler, run_id)
        await self._scheduler.runs.RetryRun(scheduler_pb2.RetryRunRequest(run_id=run_id))
        return _message(run_id, "is queued to retry what is missing")

    async def delete(self, run_id: BenchmarkRunId) -> DatasetRunMessage:
        await get_dataset_run(self._scheduler, run_id)
        await self._scheduler.runs.DeleteRun(scheduler_pb2.DeleteRunRequest(run_id=run_id))
        return _message(run_id, "deleted, with its answers")


def _message(run_id: str, what: str) -> DatasetRunMessage:
    shown = benchmark_id(run_id)
    return DatasetRunMessage(benchmark_id=shown, message=f"Benchmark {shown} {what}")
