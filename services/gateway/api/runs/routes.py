"""The benchmark API: start, show, cancel, pause, resume, retry and list jobs."""

import uuid
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.requests import Request

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.priority import Priority, default_priority
from proctor.wire.convert import member_of
from services.common.clock import Clock
from services.gateway.api.runs.job import job_listed, job_results
from services.gateway.api.runs.requests import RunRequest, RunsQuery
from services.gateway.api.runs.schemas import JobMessage, JobPage, JobResults, JobStarted
from services.gateway.api.suites.schemas import check_known_suite
from services.gateway.auth import Identity
from services.gateway.backends import Results, Scheduler
from services.gateway.errors.http_problem import problems
from services.gateway.http.parameters import JobId
from services.gateway.http.presentation import optional
from services.gateway.paths import BENCHMARKING

_DURATIONS = (
    (60.0, "under 1 minute"),
    (2 * 60.0, "1-2 minutes"),
    (5 * 60.0, "2-5 minutes"),
    (10 * 60.0, "5-10 minutes"),
    (30 * 60.0, "10-30 minutes"),
    (60 * 60.0, "30-60 minutes"),
    (3 * 3600.0, "1-3 hours"),
)


def duration_text(seconds: float | None) -> str:
    """The expected duration of a run in words."""
    if seconds is None:
        return "unknown: neither what runs nor earlier runs of this model and suite tell"
    return next((text for bound, text in _DURATIONS if seconds < bound), "over 3 hours")


class BenchmarkApi:
    """The handlers and their backends."""

    def __init__(self, scheduler: Scheduler, results: Results, identity: Identity, clock: Clock) -> None:
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
        router.post("/resume/{job_id}", responses=change, summary="Resume a paused job")(self.resume)
        router.post("/retry/{job_id}", responses=change, summary="Retry missing and failed samples")(
            self.retry
        )
        return router

    async def start(self, body: RunRequest, request: Request) -> JobStarted:
        response = await self._scheduler.runs.SubmitRun(
            scheduler_pb2.SubmitRunRequest(
                order=body.to_order(),
                user=await self._identity.user(request),
                request_id=str(uuid.uuid4()),
            )
        )
        seconds = optional(response, "estimated_seconds")
        return JobStarted(
            job_id=response.run.run_id,
            message=f"Benchmarking started for suite: {body.suite}",
            estimated_duration=duration_text(seconds),
            estimated_seconds=seconds,
            estimated_cost=optional(response, "estimated_cost"),
            currency=response.run.price.currency or None,
        )

    async def results(self, job_id: JobId) -> JobResults:
        run = await self._scheduler.run(job_id)
        return job_results(run, await self._results.summary(job_id), self._clock.now())

    async def cancel(self, job_id: JobId) -> JobMessage:
        await self._scheduler.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=job_id))
        return JobMessage(message=f"Job {job_id} cancelled successfully")

    async def retry(self, job_id: JobId) -> JobMessage:
        run = (await self._scheduler.runs.RetryRun(scheduler_pb2.RetryRunRequest(run_id=job_id))).run
        return JobMessage(message=f"Job {job_id} is queued to retry what is missing{_priority(run)}")

    async def pause(self, job_id: JobId) -> JobMessage:
        await self._scheduler.runs.PauseRun(scheduler_pb2.PauseRunRequest(run_id=job_id))
        return JobMessage(message=f"Job {job_id} paused successfully")

    async def resume(self, job_id: JobId) -> JobMessage:
        run = (await self._scheduler.runs.ResumeRun(scheduler_pb2.ResumeRunRequest(run_id=job_id))).run
        return JobMessage(message=f"Job {job_id} is queued to resume{_priority(run)}")

    async def list_jobs(self, query: Annotated[RunsQuery, Depends()]) -> JobPage:
        page = await self._scheduler.runs.ListRuns(query.request)
        if not page.total:
            await check_known_suite(self._scheduler, query.request.suite)
        return JobPage(
            results=[job_listed(run) for run in page.runs],
            total=page.total,
            next_cursor=page.next_page_token or None,
        )


def _priority(run: run_pb2.Run) -> str:
    """The priority, unless it is the highest: it may be lower than ordered."""
    priority = member_of(Priority, run.order.priority)
    return f", with priority {priority}" if priority and priority > default_priority(is_dataset=False) else ""
