"""Runs over data sets: start, list, show, label, read, cancel, pause, resume, retry, archive, delete."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.common.errors import RemoteError
from services.gateway.api.dataset_runs.requests import (
    AnswerParameters,
    DatasetRunRequest,
    DatasetRunsParameters,
)
from services.gateway.api.dataset_runs.rows import dataset_run_results
from services.gateway.api.dataset_runs.schemas import (
    DatasetRun,
    DatasetRunMessage,
    DatasetRunPage,
    DatasetRunResults,
    DatasetRunShown,
    DatasetRunStarted,
    dataset_run_listed,
    dataset_run_shown,
    dataset_run_started,
)
from services.gateway.api.exports import (
    ANSWER_FILE_RESPONSES,
    FILE_RESPONSES,
    CsvSafe,
    ExportFormatName,
    export_run,
    whole_run,
)
from services.gateway.api.runs.job import reclosed_predicate
from services.gateway.api.runs.labels import LabelsPatch, LabelsShown
from services.gateway.api.runs.routes import ARCHIVING, RESTORING
from services.gateway.auth.identity import Now, User
from services.gateway.auth.request_ids import RequestId
from services.gateway.backends.calls import ResultsCalls, SchedulerCalls
from services.gateway.http.api_errors import benchmark_id, with_parameter_names
from services.gateway.http.downloads import ContentConditions
from services.gateway.http.paths import DATASET_RUNS
from services.gateway.http.presentation import present
from services.gateway.http.problem import problems

Form = Annotated[
    Literal["json", "jsonl", "csv"],
    Query(alias="format", description="A page as JSON; jsonl and csv are files with all answers"),
]

_CHANGE = problems(404, 409, 422, 503)

router = APIRouter(prefix=DATASET_RUNS, tags=["dataset runs"])


@router.post("/run", responses=problems(400, 404, 409, 422, 503), summary="Run a model over a data set")
async def start(
    scheduler: SchedulerCalls,
    user: User,
    body: DatasetRunRequest,
    request_id: RequestId,
) -> DatasetRunStarted:
    response = await scheduler.runs.SubmitRun(
        scheduler_pb2.SubmitRunRequest(
            order=body.to_order(),
            user=user,
            request_id=request_id,
            labels=body.labels(),
        )
    )
    return dataset_run_started(response)


@router.get("", responses=problems(400, 404, 422, 503), summary="List runs over data sets, newest first")
async def list_runs(
    scheduler: SchedulerCalls, now: Now, query: Annotated[DatasetRunsParameters, Depends()]
) -> DatasetRunPage:
    page = await scheduler.runs.ListRuns(query.to_proto())
    return DatasetRunPage(
        benchmarks=[dataset_run_listed(run, now) for run in page.runs],
        total=page.total,
        next_cursor=page.next_page_token or None,
    )


@router.get("/{benchmark_id}", responses=problems(404, 422, 503), summary="One run, with its figures so far")
async def show(results: ResultsCalls, now: Now, run: DatasetRun) -> DatasetRunShown:
    return dataset_run_shown(run, await results.summary(run.run_id), now)


@router.patch("/{benchmark_id}", responses=_CHANGE, summary="Change the name, the tags or the note of a run")
async def label(scheduler: SchedulerCalls, run: DatasetRun, body: LabelsPatch) -> LabelsShown:
    response = await scheduler.runs.LabelRun(body.to_proto(run.run_id))
    return present(LabelsShown, response.run.labels)


@router.get(
    "/{benchmark_id}/results",
    responses=ANSWER_FILE_RESPONSES | problems(400, 404, 409, 422, 503),
    response_model=DatasetRunResults,
    summary="Answers row by row, in the order of the data set",
)
async def results(
    *,
    backend: ResultsCalls,
    now: Now,
    run: DatasetRun,
    chosen: Annotated[AnswerParameters, Depends()],
    conditions: Annotated[ContentConditions, Depends()],
    csv_safe: CsvSafe,
    form: Form = "json",
) -> Response:
    if form != "json":
        chosen.check_none()
        return await export_run(backend, whole_run(run.run_id, form, csv_safe=csv_safe), conditions)
    try:
        outcomes = await backend.recorded_outcomes(chosen.to_proto(run.run_id))
    except RemoteError as error:
        raise with_parameter_names(error) from error
    shown = dataset_run_results(run, outcomes, now)
    # Pages may be large, so FastAPI does not validate them a second time.
    return Response(shown.model_dump_json(), media_type="application/json")


@router.get(
    "/{benchmark_id}/export",
    responses=FILE_RESPONSES | problems(400, 404, 409, 422, 503),
    response_class=Response,
    summary="All answers as a file",
)
async def export(
    results: ResultsCalls,
    run: DatasetRun,
    conditions: Annotated[ContentConditions, Depends()],
    csv_safe: CsvSafe,
    form: Annotated[ExportFormatName, Query(alias="format")] = "jsonl",
) -> Response:
    return await export_run(results, whole_run(run.run_id, form, csv_safe=csv_safe), conditions)


@router.post("/{benchmark_id}/cancel", responses=_CHANGE, summary="Cancel it and keep its answers")
async def cancel(scheduler: SchedulerCalls, run: DatasetRun) -> DatasetRunMessage:
    await scheduler.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run.run_id))
    return _message(run, "cancelled; recorded answers are kept")


@router.post("/{benchmark_id}/pause", responses=_CHANGE, summary="Pause it")
async def pause(scheduler: SchedulerCalls, run: DatasetRun) -> DatasetRunMessage:
    await scheduler.runs.PauseRun(scheduler_pb2.PauseRunRequest(run_id=run.run_id))
    return _message(run, "paused")


@router.post("/{benchmark_id}/resume", responses=_CHANGE, summary="Resume it")
async def resume(scheduler: SchedulerCalls, run: DatasetRun) -> DatasetRunMessage:
    await scheduler.runs.ResumeRun(scheduler_pb2.ResumeRunRequest(run_id=run.run_id))
    return _message(run, "is queued to resume")


@router.post("/{benchmark_id}/retry", responses=_CHANGE, summary="Retry what is missing or failed")
async def retry(scheduler: SchedulerCalls, run: DatasetRun) -> DatasetRunMessage:
    await scheduler.runs.RetryRun(scheduler_pb2.RetryRunRequest(run_id=run.run_id))
    return _message(run, "is queued to retry what is missing")


@router.post(
    "/{benchmark_id}/archive",
    responses=_CHANGE,
    summary="Move the answers of a closed run to the object store, where they can be read",
)
async def archive(scheduler: SchedulerCalls, run: DatasetRun) -> DatasetRunMessage:
    await scheduler.runs.ArchiveRun(scheduler_pb2.ArchiveRunRequest(run_id=run.run_id))
    return _message(run, ARCHIVING)


@router.post("/{benchmark_id}/restore", responses=_CHANGE, summary="Move the answers of an archived run back")
async def restore(scheduler: SchedulerCalls, run: DatasetRun) -> DatasetRunMessage:
    await scheduler.runs.RestoreRun(scheduler_pb2.RestoreRunRequest(run_id=run.run_id))
    return _message(run, RESTORING)


@router.post(
    "/{benchmark_id}/reclose",
    responses=_CHANGE,
    summary="Compute the figures that its close left out. Operators only",
)
async def reclose(results: ResultsCalls, run: DatasetRun) -> DatasetRunMessage:
    response = await results.outcomes.RecloseRun(results_pb2.RecloseRunRequest(run_id=run.run_id))
    return _message(run, reclosed_predicate(response))


@router.delete("/{benchmark_id}", responses=_CHANGE, summary="Delete a closed run with its answers")
async def delete(scheduler: SchedulerCalls, run: DatasetRun) -> DatasetRunMessage:
    await scheduler.runs.DeleteRun(scheduler_pb2.DeleteRunRequest(run_id=run.run_id))
    return _message(run, "deleted, with its answers")


def _message(run: run_pb2.Run, what: str) -> DatasetRunMessage:
    shown = benchmark_id(run.run_id)
    return DatasetRunMessage(benchmark_id=shown, message=f"Run {shown} {what}")
