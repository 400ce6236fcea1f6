"""The benchmark API: start, show, cancel, pause, resume, retry, archive, close again and list jobs."""

from typing import Annotated

from fastapi import APIRouter, Depends

from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.priority import Priority, priority_note
from proctor.wire.enums import member_of
from services.gateway.api.models import full_model
from services.gateway.api.runs.job import job_listed, job_results, reclosed_predicate
from services.gateway.api.runs.requests import RunRequest, RunsParameters
from services.gateway.api.runs.schemas import EstimateShown, JobPage, JobResults, JobStarted
from services.gateway.api.suites.schemas import check_known_benchmark
from services.gateway.auth.identity import Now, User
from services.gateway.auth.request_ids import RequestId
from services.gateway.backends.calls import ResultsCalls, SchedulerCalls
from services.gateway.http.parameters import JobId
from services.gateway.http.paths import BENCHMARKING
from services.gateway.http.presentation import Done, optional, present
from services.gateway.http.problem import problems

_DURATIONS = (
    (60.0, "under 1 minute"),
    (2 * 60.0, "1-2 minutes"),
    (5 * 60.0, "2-5 minutes"),
    (10 * 60.0, "5-10 minutes"),
    (30 * 60.0, "10-30 minutes"),
    (60 * 60.0, "30-60 minutes"),
    (3 * 3600.0, "1-3 hours"),
)

router = APIRouter(prefix=BENCHMARKING, tags=["benchmarks"])
_CHANGE = problems(404, 409, 422, 503)
# Predicates of a run whose answers move.
ARCHIVING = "is being archived; its answers can be read meanwhile, and afterwards"
RESTORING = "is being restored; its answers can be read meanwhile"


def duration_text(seconds: float | None) -> str:
    """The expected duration of a run in words."""
    if seconds is None:
        return "unknown: there is no earlier run of this model and suite, and none is running"
    return next((text for bound, text in _DURATIONS if seconds < bound), "over 3 hours")


@router.post("/run", responses=problems(400, 404, 409, 422, 429, 503), summary="Start a run")
async def start(scheduler: SchedulerCalls, user: User, body: RunRequest, request_id: RequestId) -> JobStarted:
    response = await scheduler.runs.SubmitRun(
        scheduler_pb2.SubmitRunRequest(
            order=body.to_order(), user=user, request_id=request_id, labels=body.labels()
        )
    )
    return present(
        JobStarted,
        response,
        response.run.price,
        job_id=response.run.run_id,
        message=f"Benchmarking started for suite: {body.suite}",
        estimated_duration=duration_text(optional(response, "estimated_seconds")),
    )


@router.post(
    "/estimate",
    responses=problems(400, 404, 422, 503),
    summary="Estimate what a run would take. Nothing is started",
)
async def estimate(scheduler: SchedulerCalls, user: User, body: RunRequest) -> EstimateShown:
    request = scheduler_pb2.EstimateRunRequest(order=body.to_order(), user=user)
    response = await scheduler.runs.EstimateRun(request)
    duration = duration_text(optional(response, "estimated_seconds"))
    return present(EstimateShown, response, response.price, estimated_duration=duration)


@router.get(
    "/results/{job_id}",
    responses=problems(404, 422, 503),
    response_model_exclude_defaults=True,
    summary="Figures of a job, partial while it runs",
)
async def results(scheduler: SchedulerCalls, results: ResultsCalls, now: Now, job_id: JobId) -> JobResults:
    run = await scheduler.run(job_id)
    return job_results(run, await results.summary(job_id), now)


@router.post("/cancel/{job_id}", responses=_CHANGE, summary="Cancel a job")
async def cancel(scheduler: SchedulerCalls, job_id: JobId) -> Done:
    await scheduler.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=job_id))
    return Done(message=f"Job {job_id} cancelled successfully")


@router.post("/retry/{job_id}", responses=_CHANGE, summary="Retry missing and failed samples")
async def retry(scheduler: SchedulerCalls, job_id: JobId) -> Done:
    run = (await scheduler.runs.RetryRun(scheduler_pb2.RetryRunRequest(run_id=job_id))).run
    return Done(message=f"Job {job_id} is queued to retry what is missing{_note(run)}")


@router.post("/pause/{job_id}", responses=_CHANGE, summary="Pause a job")
async def pause(scheduler: SchedulerCalls, job_id: JobId) -> Done:
    await scheduler.runs.PauseRun(scheduler_pb2.PauseRunRequest(run_id=job_id))
    return Done(message=f"Job {job_id} paused successfully")


@router.post("/resume/{job_id}", responses=_CHANGE, summary="Resume a paused job")
async def resume(scheduler: SchedulerCalls, job_id: JobId) -> Done:
    run = (await scheduler.runs.ResumeRun(scheduler_pb2.ResumeRunRequest(run_id=job_id))).run
    return Done(message=f"Job {job_id} is queued to resume{_note(run)}")


@router.post(
    "/archive/{job_id}",
    responses=_CHANGE,
    summary="Move the answers of a closed job to the object store, where they can be read",
)
async def archive(scheduler: SchedulerCalls, job_id: JobId) -> Done:
    await scheduler.runs.ArchiveRun(scheduler_pb2.ArchiveRunRequest(run_id=job_id))
    return Done(message=f"Job {job_id} {ARCHIVING}")


@router.post("/restore/{job_id}", responses=_CHANGE, summary="Move the answers of an archived job back")
async def restore(scheduler: SchedulerCalls, job_id: JobId) -> Done:
    await scheduler.runs.RestoreRun(scheduler_pb2.RestoreRunRequest(run_id=job_id))
    return Done(message=f"Job {job_id} {RESTORING}")


@router.post(
    "/reclose/{job_id}",
    responses=_CHANGE,
    summary="Compute the figures that the close of a job left out. Operators only",
)
async def reclose(results: ResultsCalls, job_id: JobId) -> Done:
    response = await results.outcomes.RecloseRun(results_pb2.RecloseRunRequest(run_id=job_id))
    return Done(message=f"Job {job_id} {reclosed_predicate(response)}")


@router.get(
    "/results",
    responses=problems(400, 404, 422, 503),
    response_model_exclude_defaults=True,
    summary="List jobs",
)
async def list_jobs(scheduler: SchedulerCalls, query: Annotated[RunsParameters, Depends()]) -> JobPage:
    request = query.to_proto()
    request.model = await full_model(scheduler, query.model_name)
    page = await scheduler.runs.ListRuns(request)
    # Only where nothing is found: a removed suite keeps its runs.
    if not page.total:
        await check_known_benchmark(scheduler, query.suite)
    return JobPage(
        results=[job_listed(run) for run in page.runs],
        total=page.total,
        next_cursor=page.next_page_token or None,
    )


def _note(run: run_pb2.Run) -> str:
    return priority_note(member_of(Priority, run.order.priority))
