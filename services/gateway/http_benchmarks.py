"""The benchmark API: start, look, cancel, retry, list. Each handler converts, calls and converts back."""

import uuid
from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query
from starlette.requests import Request

from proctor.v1 import run_pb2, summary_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.common.clock import Clock
from services.common.errors import ErrorKind, RemoteError
from services.gateway.duration_text import duration_text
from services.gateway.errors import RunNotFound
from services.gateway.grpc_backends import Backends
from services.gateway.http_identity import Identity
from services.gateway.http_job_results import job_listed, job_results
from services.gateway.http_requests import RunRequest
from services.gateway.http_responses import JobMessage, JobPage, JobResults, JobStarted, Problem
from services.gateway.proto_words import STATES

PREFIX = "/api/v1/benchmarking"

Status = Literal["pending", "running", "paused", "completed", "failed", "cancelled"]


def _known_form(job_id: Annotated[str, Path(description="UUID")]) -> str:
    """A name that no job can have names no job."""
    try:
        return str(uuid.UUID(job_id))
    except ValueError as error:
        raise RunNotFound(run_id=job_id) from error


JobId = Annotated[str, Depends(_known_form)]


class ListQuery:
    """Filters and page of a list of jobs."""

    def __init__(
        self,
        model_name: Annotated[str, Query(description='"provider/name"')] = "",
        suite: str = "",
        status: Status | None = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 20,
        cursor: Annotated[str, Query(description="next_cursor of the page before")] = "",
    ) -> None:
        self.request = scheduler_pb2.ListRunsRequest(
            page_size=limit,
            page_token=cursor,
            state=STATES[status] if status else run_pb2.RUN_STATE_UNSPECIFIED,
            suite=suite,
            model=model_name,
        )


class BenchmarkApi:
    """The handlers, with what they ask."""

    def __init__(self, backends: Backends, identity: Identity, clock: Clock) -> None:
        self._backends = backends
        self._identity = identity
        self._clock = clock

    def router(self) -> APIRouter:
        router = APIRouter(prefix=PREFIX, tags=["benchmarks"])
        one, change = _problems(404, 422, 503), _problems(404, 409, 422, 503)
        start = router.post("/run", responses=_problems(400, 422, 429, 503), summary="Start a benchmark")
        start(self.start)
        router.get("/results", responses=_problems(400, 422, 503), summary="List jobs")(self.list_jobs)
        router.get(
            "/results/{job_id}",
            responses=one,
            response_model_exclude_defaults=True,
            summary="Figures of a job, partial while it runs",
        )(self.results)
        router.post("/cancel/{job_id}", responses=change, summary="Cancel a job")(self.cancel)
        router.post("/retry/{job_id}", responses=change, summary="Ask again for what is missing")(self.retry)
        return router

    async def start(self, body: RunRequest, request: Request) -> JobStarted:
        response = await self._backends.submit_run(
            scheduler_pb2.SubmitRunRequest(
                order=body.to_order(),
                user=await self._identity.user(request),
                request_id=str(uuid.uuid4()),
            )
        )
        has_estimate = response.HasField("estimated_seconds")
        seconds = response.estimated_seconds if has_estimate else None
        return JobStarted(
            job_id=response.run.run_id,
            message=f"Benchmarking started for suite: {body.suite}",
            estimated_duration=duration_text(seconds),
            estimated_seconds=seconds,
        )

    async def results(self, job_id: JobId) -> JobResults:
        run = await self._backends.get_run(job_id)
        return job_results(run, await self._summary(job_id), self._clock.now())

    async def _summary(self, job_id: str) -> summary_pb2.RunSummary:
        try:
            return await self._backends.get_summary(job_id)
        except RemoteError as error:
            # A run has no record before it is planned.
            if error.kind is ErrorKind.NOT_FOUND:
                return summary_pb2.RunSummary(run_id=job_id)
            raise

    async def cancel(self, job_id: JobId) -> JobMessage:
        await self._backends.cancel_run(job_id)
        return JobMessage(message=f"Job {job_id} cancelled successfully")

    async def retry(self, job_id: JobId) -> JobMessage:
        await self._backends.retry_run(job_id)
        return JobMessage(message=f"Job {job_id} waits to be run again for what is missing")

    async def list_jobs(self, query: Annotated[ListQuery, Depends()]) -> JobPage:
        page = await self._backends.list_runs(query.request)
        return JobPage(
            results=[job_listed(run) for run in page.runs],
            total=page.total,
            next_cursor=page.next_page_token or None,
        )


def _problems(*statuses: int) -> dict[int | str, dict[str, object]]:
    return {status: {"model": Problem, "description": HTTPStatus(status).phrase} for status in statuses}
