"""Batches and files of the OpenAI protocol: their lists, a batch, and what a user does with them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Path, Query, WebSocket
from starlette.responses import Response

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.wire.enums import value_of
from services.common.errors import DomainError, ErrorKind
from services.gateway.api.openai import batch_object, file_object
from services.gateway.auth.identity import Now
from services.gateway.backends.calls import Scheduler, SchedulerCalls
from services.gateway.pages.batches.view import BatchListView, BatchRow, BatchView, FileListView, FileRow
from services.gateway.pages.live.views import PartAddress, PushedView, push_view
from services.gateway.pages.page import Notice, PageOf

_PAGE_SIZE = 50
_PURPOSES = ("batch", "batch_output")
_FILES = "/batches/files"

Id = Annotated[str, Path(max_length=255)]
After = Annotated[str, Query(max_length=255)]

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class FileQuery:
    """Filters of the files. `file` is the only one to show, and `ask` the one that is to be deleted."""

    purpose: str = ""
    after: After = ""
    ask: After = ""
    file: After = ""


@router.get("/batches")
async def list_batches(page: PageOf, scheduler: SchedulerCalls, now: Now, after: After = "") -> Response:
    return page.show("batches/list", await _batches(scheduler, now, after))


@router.websocket("/batches/socket")
async def watch_batches(socket: WebSocket, after: After = "", build: str = "") -> None:
    """Pushes the list; `build`, here and below, is the digest of the files that the page was made with."""
    state = socket.app.state

    async def read() -> PushedView:
        return PushedView(await _batches(state.scheduler, state.clock.now(), after))

    await push_view(socket, build, PartAddress("batches/list_part", after), read)


async def _batches(scheduler: Scheduler, now: datetime, after: str) -> BatchListView:
    request = batch_pb2.ListBatchesRequest(page_size=_PAGE_SIZE, after_batch_id=after)
    listed = await scheduler.batches.ListBatches(request)
    rows = [batch_object(BatchRow, batch) for batch in listed.batches]
    following = rows[-1].id if rows and listed.has_more else ""
    return BatchListView(rows, after, following, now)


# Before the batches, whose ids match any word.
@router.get("/batches/files")
async def list_files(
    page: PageOf, scheduler: SchedulerCalls, now: Now, query: Annotated[FileQuery, Depends()]
) -> Response:
    purpose, after = query.purpose if query.purpose in _PURPOSES else "", query.after
    if query.file:
        found = await scheduler.files.GetFile(file_pb2.GetFileRequest(file_id=query.file))
        rows = [file_object(FileRow, found.file)]
        asked = rows[0] if query.ask == query.file else None
        return page.show("batches/files", FileListView(rows, "", "", "", asked, now, is_one=True))
    request = file_pb2.ListFilesRequest(
        page_size=_PAGE_SIZE,
        after_file_id=after,
        purpose=value_of(file_pb2.FilePurpose, purpose or "unspecified"),
    )
    listed = await scheduler.files.ListFiles(request)
    rows = [file_object(FileRow, file) for file in listed.files]
    view = FileListView(
        rows=rows,
        purpose=purpose,
        after=after,
        following=rows[-1].id if rows and listed.has_more else "",
        asked=next((row for row in rows if row.id == query.ask), None),
        now=now,
    )
    return page.show("batches/files", view)


@router.get("/batches/{batch_id}")
async def show_batch(
    page: PageOf, scheduler: SchedulerCalls, now: Now, batch_id: Id, ask: str = ""
) -> Response:
    found = await scheduler.batches.GetBatch(batch_pb2.GetBatchRequest(batch_id=batch_id))
    return page.show("batches/batch", BatchView(batch_object(BatchRow, found.batch), ask, now))


@router.websocket("/batches/{batch_id}/socket")
async def watch_batch(socket: WebSocket, batch_id: Id, build: str = "") -> None:
    state = socket.app.state

    async def read() -> PushedView:
        found = await state.scheduler.batches.GetBatch(batch_pb2.GetBatchRequest(batch_id=batch_id))
        view = BatchView(batch_object(BatchRow, found.batch), "", state.clock.now())
        return PushedView(view, is_over=view.batch.is_final)

    await push_view(socket, build, PartAddress("batches/batch_part", batch_id), read)


@router.post("/batches/{batch_id}/cancel")
async def cancel(page: PageOf, scheduler: SchedulerCalls, batch_id: Id) -> Response:
    path = f"/batches/{batch_id}"
    try:
        await scheduler.batches.CancelBatch(batch_pb2.CancelBatchRequest(batch_id=batch_id))
    except DomainError as error:
        # The batch has finished since the page was rendered: shown again, it says how.
        if error.kind is not ErrorKind.CONFLICT:
            raise
        return page.go(path, Notice(error.message, is_problem=True))
    return page.go(path, Notice("The batch is cancelled. Its answers so far are written to its files."))


@router.post("/batches/files/{file_id}/delete")
async def delete(
    page: PageOf, scheduler: SchedulerCalls, file_id: Id, back: Annotated[str, Form(max_length=4096)] = ""
) -> Response:
    """`back` is the page of the list that it was deleted from."""
    path = back if back.startswith(_FILES) else _FILES
    try:
        await scheduler.files.DeleteFile(file_pb2.DeleteFileRequest(file_id=file_id))
    except DomainError as error:
        if error.kind is not ErrorKind.CONFLICT:
            raise
        return page.go(path, Notice(error.message, is_problem=True))
    return page.go(path, Notice("The file is deleted."))
