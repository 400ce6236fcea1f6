"""The id of a job in a path.
How long a run is expected to take, in words.
The benchmark API: start, look, cancel, retry, list. Each handler converts, calls and converts back.
"""

import uuid
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from starlette.requests import Request

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.common.clock import Clock
from services.gateway.api.runs.job import job_listed, job_results
from services.gateway.api.runs.requests import RunRequest
from services.gateway.api.runs.schemas import JobMessage, JobPage, JobResults, JobStarted
from services.gateway.api.suites.suite_names import SuiteFilter, refuse_unknown
from services.gateway.auth.identity import Identity
from services.gateway.backends.results import ResultsBackend
from services.gateway.backends.scheduler import SchedulerBackend
from services.gateway.errors.http_problem import problems
from services.gateway.http.path_ids import JobId
from services.gateway.http.presentation import STATES, priority_word
from services.gateway.paths import BENCHMARKING

_BOUNDS = (
    (60.0, "under 1 minute"),
    (2 * 60.0, "1-2 minutes"),
    (5 * 60.0, "2-5 minutes"),
    (10 * 60.0, "5-10 minutes"),
    (30 * 60.0, "10-30 minutes"),
    (60 * 60.0, "30-60 minutes"),
    (3 * 3600.0, "1-3 hours"),
)


def duration_text(seconds: float | None) -> str:
    if seconds is None:
        return "unknown: neither what runs nor earlier runs of this model and suite tell"
    return next((words for bound, words in _BOUNDS if seconds < bound), "over 3 hours")


Status = Literal["pending", "running", "paused", "completed", "failed", "cancelled"]


class ListQuery:
    """Filters and page of a list of jobs."""

    def __init__(
        self,
        model_name: Annotated[str, Query(description='"provider/name"')] = "",
        suite: SuiteFilter = "",
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

    def __init__(
        self, scheduler: SchedulerBackend, results: ResultsBackend, identity: Identity, clock: Clock
    ) -> None:
        self._scheduler = scheduler
        self._results = results
        self._identity = identity
        self._clock = clock

    def router(self) -> APIRouter:
        router = APIRouter(prefix=BENCHMARKING, tags=["benchmarks"])
        one, change = problems(404, 422, 503), problems(404, 409, 422, 503)
        start = router.post("/run", responses=problems(400, 422, 429, 503), summary="Start a benchmark")
        start(self.start)
        router.get(
            "/results",
            responses=problems(400, 404, 422, 503),
            response_model_exclude_defaults=True,
            summary="List jobs",
        )(self.list_jobs)
        router.get(
            "/results/{job_id}",
            responses=one,
            response_model_exclude_defaults=True,
            summary="Figures of a job, partial while it runs",
        )(self.results)
        router.post("/cancel/{job_id}", responses=change, summary="Cancel a job")(self.cancel)
        router.post("/pause/{job_id}", responses=change, summary="Pause a job")(self.pause)
        router.post("/resume/{job_id}", responses=change, summary="Let a paused job go on")(self.resume)
        router.post("/retry/{job_id}", responses=change, summary="Ask again for what is missing")(self.retry)
        return router

    async def start(self, body: RunRequest, request: Request) -> JobStarted:
        response = await self._scheduler.submit_run(
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
            estimated_cost=response.estimated_cost if response.HasField("estimated_cost") else None,
            currency=response.run.price.currency or None,
        )

    async def results(self, job_id: JobId) -> JobResults:
        run = await self._scheduler.get_run(job_id)
        return job_results(run, await self._results.summary_so_far(job_id), self._clock.now())

    async def cancel(self, job_id: JobId) -> JobMessage:
        await self._scheduler.cancel_run(job_id)
        return JobMessage(message=f"Job {job_id} cancelled successfully")

    async def retry(self, job_id: JobId) -> JobMessage:
        run = await self._scheduler.retry_run(job_id)
        return JobMessage(message=f"Job {job_id} waits to be run again for what is missing{_urgency(run)}")

    async def pause(self, job_id: JobId) -> JobMessage:
        await self._scheduler.pause_run(job_id)
        return JobMessage(message=f"Job {job_id} paused successfully")

    async def resume(self, job_id: JobId) -> JobMessage:
        run = await self._scheduler.resume_run(job_id)
        return JobMessage(message=f"Job {job_id} waits for its turn to go on{_urgency(run)}")

    async def list_jobs(self, query: Annotated[ListQuery, Depends()]) -> JobPage:
        page = await self._scheduler.list_runs(query.request)
        if not page.total:
            await refuse_unknown(self._scheduler, query.request.suite)
        return JobPage(
            results=[job_listed(run) for run in page.runs],
            total=page.total,
            next_cursor=page.next_page_token or None,
        )


def _urgency(run: run_pb2.Run) -> str:
    """Said where it is not the highest: it may be lower than it was ordered with."""
    word = priority_word(run.order.priority)
    return f", with priority {word}" if word in ("normal", "low") else ""
