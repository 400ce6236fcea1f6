"""The queue: what runs and waits and why, the workers, and the limits, which an operator changes here."""

from collections.abc import Mapping
from urllib.parse import urlencode

from fastapi import APIRouter, Request, WebSocket
from pydantic import ValidationError
from starlette.responses import Response

from proctor.v1.queue_service_pb2 import GetQueueRequest
from services.common.errors import DomainError, ErrorKind
from services.gateway.api.queue import LimitsPatch
from services.gateway.auth.identity import Now
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.form_sentences import form_sentence
from services.gateway.pages.live.views import PartAddress, PushedView, push_view
from services.gateway.pages.page import Notice, PageOf
from services.gateway.pages.queue.view import queue_view
from services.gateway.pages.text import entered

_SHOWN = 200
_LIMITS = (
    "max_running_runs",
    "max_pending_runs_per_user",
    "max_requests_per_minute",
    "run_time_limit_seconds",
    "min_run_time_seconds",
    "max_stored_bytes_per_user",
    "max_stored_files_per_user",
    "max_stored_rows_per_user",
    "max_stored_bytes_per_project",
)

router = APIRouter(prefix="/queue", include_in_schema=False)


@router.get("")
async def show_queue(page: PageOf, scheduler: SchedulerCalls, now: Now) -> Response:
    queue = await scheduler.queue.GetQueue(GetQueueRequest(page_size=_SHOWN))
    return page.show("queue/queue", queue_view(queue, now))


@router.websocket("/socket")
async def watch_queue(socket: WebSocket, build: str = "") -> None:
    """Pushes the queue; `build` is the digest of the files that the page was made with."""
    state = socket.app.state

    async def read() -> PushedView:
        queue = await state.scheduler.queue.GetQueue(GetQueueRequest(page_size=_SHOWN))
        return PushedView(queue_view(queue, state.clock.now()))

    await push_view(socket, build, PartAddress("queue/queue_part", ""), read)


@router.get("/limits")
async def show_limits(page: PageOf) -> Response:
    """The address that is left after limits were refused."""
    return page.go("/queue")


@router.post("/limits")
async def change_limits(request: Request, page: PageOf, scheduler: SchedulerCalls, now: Now) -> Response:
    """An empty field is reset to the settings.

    Only what was changed in the form is set: another operator may have changed the rest meanwhile.
    """
    form = {**request.query_params, **await request.form()}
    queue = await scheduler.queue.GetQueue(GetQueueRequest(page_size=_SHOWN))
    given = {name: str(form[name]).strip() for name in _LIMITS if name in form}
    changed = {name: value for name, value in given.items() if value != form.get(f"was_{name}")}
    if not changed:
        return page.go("/queue", Notice("No limit was changed."))
    faults: Mapping[str, str]
    try:
        changes = LimitsPatch.model_validate(
            {name: entered(value) if value else None for name, value in changed.items()}
        )
        await scheduler.queue.SetLimits(changes.to_proto())
    except ValidationError as error:
        faults = {str(fault["loc"][0]): form_sentence(fault) for fault in error.errors()}
    except DomainError as error:
        if error.kind is not ErrorKind.INVALID:
            raise
        faults = {"": error.message}
    else:
        view = queue_view(queue, now)
        before = {name: view.value(name) for name in _LIMITS if name in changed}
        undo = f"/queue/limits?{urlencode(before)}"
        return page.go("/queue", Notice("The limits hold from now on, for all replicas.", undo=undo))
    return page.show("queue/queue", queue_view(queue, now, faults, given), status=422)
