"""Actions of the page of a run: each is a form that shows the page again, with a notice."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import Response

from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.common.errors import DomainError, ErrorKind
from services.gateway.backends.calls import BackendCalls, Backends
from services.gateway.http.parameters import JobId
from services.gateway.pages.page import Notice, PageOf


@dataclass(frozen=True, slots=True)
class RunAction:
    """A call of a backend, what it did, and the action that undoes it."""

    call: Callable[[Backends, str], Awaitable[object]]
    done: str
    undo: str = ""
    undo_name: str = ""


async def _pause(backends: Backends, run_id: str) -> None:
    await backends.scheduler.runs.PauseRun(scheduler_pb2.PauseRunRequest(run_id=run_id))


async def _resume(backends: Backends, run_id: str) -> None:
    await backends.scheduler.runs.ResumeRun(scheduler_pb2.ResumeRunRequest(run_id=run_id))


async def _cancel(backends: Backends, run_id: str) -> None:
    await backends.scheduler.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run_id))


async def _retry(backends: Backends, run_id: str) -> None:
    await backends.scheduler.runs.RetryRun(scheduler_pb2.RetryRunRequest(run_id=run_id))


async def _delete(backends: Backends, run_id: str) -> None:
    await backends.scheduler.runs.DeleteRun(scheduler_pb2.DeleteRunRequest(run_id=run_id))


async def _archive(backends: Backends, run_id: str) -> None:
    await backends.scheduler.runs.ArchiveRun(scheduler_pb2.ArchiveRunRequest(run_id=run_id))


async def _restore(backends: Backends, run_id: str) -> None:
    await backends.scheduler.runs.RestoreRun(scheduler_pb2.RestoreRunRequest(run_id=run_id))


async def _reclose(backends: Backends, run_id: str) -> None:
    await backends.results.outcomes.RecloseRun(results_pb2.RecloseRunRequest(run_id=run_id))


_ACTIONS = {
    "pause": RunAction(_pause, "The run is paused. What is in flight is still recorded.", "resume", "Resume"),
    "resume": RunAction(_resume, "The run is queued again and continues where it stopped.", "pause", "Pause"),
    "cancel": RunAction(_cancel, "The run is cancelled. Its answers are kept.", "retry", "Retry"),
    "retry": RunAction(_retry, "The run is queued to process what is missing or failed."),
    "archive": RunAction(
        _archive,
        "The answers of the run move to the object store. They can be read meanwhile, and afterwards.",
        "restore",
        "Restore",
    ),
    "restore": RunAction(_restore, "The answers of the run move back. They can be read meanwhile."),
    "reclose": RunAction(
        _reclose, "The run is closed again. Its figures appear here once they are computed."
    ),
    "delete": RunAction(_delete, "The run and its answers are deleted."),
}

router = APIRouter(prefix="/runs", include_in_schema=False)


async def _act(page: PageOf, backends: Backends, job_id: JobId, name: str) -> Response:
    action, path = _ACTIONS[name], f"/runs/{job_id}"
    try:
        await action.call(backends, job_id)
    except DomainError as error:
        # The run has changed since the page was rendered: shown again, it says how.
        if error.kind is not ErrorKind.CONFLICT:
            raise
        return page.go(path, Notice(error.message, is_problem=True))
    if name == "delete":
        return page.go("/runs", Notice(action.done))
    undo = f"{path}/{action.undo}" if action.undo else ""
    return page.go(path, Notice(action.done, undo=undo, undo_name=action.undo_name or "Undo"))


@router.post("/{job_id}/pause")
async def pause(page: PageOf, backends: BackendCalls, job_id: JobId) -> Response:
    return await _act(page, backends, job_id, "pause")


@router.post("/{job_id}/resume")
async def resume(page: PageOf, backends: BackendCalls, job_id: JobId) -> Response:
    return await _act(page, backends, job_id, "resume")


@router.post("/{job_id}/cancel")
async def cancel(page: PageOf, backends: BackendCalls, job_id: JobId) -> Response:
    return await _act(page, backends, job_id, "cancel")


@router.post("/{job_id}/retry")
async def retry(page: PageOf, backends: BackendCalls, job_id: JobId) -> Response:
    return await _act(page, backends, job_id, "retry")


@router.post("/{job_id}/delete")
async def delete(page: PageOf, backends: BackendCalls, job_id: JobId) -> Response:
    return await _act(page, backends, job_id, "delete")


@router.post("/{job_id}/archive")
async def archive(page: PageOf, backends: BackendCalls, job_id: JobId) -> Response:
    return await _act(page, backends, job_id, "archive")


@router.post("/{job_id}/restore")
async def restore(page: PageOf, backends: BackendCalls, job_id: JobId) -> Response:
    return await _act(page, backends, job_id, "restore")


@router.post("/{job_id}/reclose")
async def reclose(page: PageOf, backends: BackendCalls, job_id: JobId) -> Response:
    return await _act(page, backends, job_id, "reclose")
