"""Data sets: the list with the upload, one with rows as a model would be asked, and runs over data sets."""

import asyncio
import uuid
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, WebSocket
from starlette.requests import Request
from starlette.responses import Response

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.common.errors import DomainError, ErrorKind
from services.gateway.api.datasets.mappings import mapping_saved
from services.gateway.api.datasets.routes import dataset_listed, dataset_row
from services.gateway.api.datasets.upload import beginning_of, mapping_to_save, upload_requests
from services.gateway.auth.identity import Now, User
from services.gateway.backends.calls import Scheduler, SchedulerCalls
from services.gateway.http.parameters import JSON_INT_MAX
from services.gateway.http.project_names import key_project
from services.gateway.pages.addresses import address
from services.gateway.pages.datasets.view import (
    DatasetListView,
    DatasetRunsView,
    DatasetView,
    MappedView,
    PreviewRow,
    UploadView,
    mapped_view,
)
from services.gateway.pages.live.views import PartAddress, PushedView, push_view
from services.gateway.pages.page import Notice, PageOf
from services.gateway.pages.rows.runs import newest_runs, run_row

_PAGE_SIZE = 50
# Errors of these kinds are about the file; the form shows their sentence.
_REFUSED = frozenset({ErrorKind.INVALID})
# And about a mapping and its name.
_UNSAVED = frozenset({ErrorKind.INVALID, ErrorKind.NOT_FOUND, ErrorKind.CONFLICT, ErrorKind.FORBIDDEN})
_PREVIEWED = 10
_UNFINISHED = (run_pb2.RUN_STATE_RUNNING, run_pb2.RUN_STATE_PENDING, run_pb2.RUN_STATE_PAUSED)

DatasetId = Annotated[str, Path(max_length=255)]
Token = Annotated[str, Query(max_length=512)]
MappingName = Annotated[str, Query(max_length=100)]
Project = Annotated[int, Query(ge=0, le=JSON_INT_MAX)]

router = APIRouter(prefix="/datasets", include_in_schema=False)


@router.get("")
async def list_datasets(  # noqa: PLR0917  # dependencies and parameters
    page: PageOf,
    scheduler: SchedulerCalls,
    now: Now,
    after: Token = "",
    mapping: MappingName = "",
    project_id: Project = 0,
) -> Response:
    """`mapping`: the saved one that the form begins with."""
    chosen = await _chosen(scheduler, mapping, project_id) if mapping else None
    view = await dataset_list(scheduler, now, after, chosen)
    response = page.show("datasets/list", view, part="datasets/list_part")
    if page.is_part:
        response.headers["HX-Push-Url"] = address("/datasets", {"after": after})
    return response


async def dataset_list(
    scheduler: SchedulerCalls, now: Now, after: str = "", upload: UploadView | None = None
) -> DatasetListView:
    request = dataset_pb2.ListDatasetsRequest(page_size=_PAGE_SIZE, page_token=after)
    listed, saved = await asyncio.gather(
        scheduler.datasets.ListDatasets(request),
        scheduler.datasets.ListMappings(dataset_pb2.ListMappingsRequest()),
    )
    return DatasetListView(
        rows=[dataset_listed(each) for each in listed.datasets],
        total=listed.total,
        after=after,
        following=listed.next_page_token,
        upload=upload or UploadView(),
        saved=[mapping_saved(each) for each in saved.mappings],
        now=now,
    )


async def _chosen(scheduler: Scheduler, name: str, project_id: int) -> UploadView:
    """A mapping that is gone is no reason to show no data sets."""
    request = dataset_pb2.GetMappingRequest(name=name, project_id=project_id)
    try:
        saved = (await scheduler.datasets.GetMapping(request)).saved
        return UploadView(mapped=MappedView.of(saved.mapping, saved.name))
    except DomainError as error:
        if error.kind not in {ErrorKind.NOT_FOUND, ErrorKind.INVALID}:
            raise
        return UploadView(problem=error.message)


@router.get("/runs")
async def list_dataset_runs(page: PageOf, scheduler: SchedulerCalls, now: Now, after: Token = "") -> Response:
    return page.show("datasets/runs", await _dataset_runs(scheduler, now, after))


@router.websocket("/runs/socket")
async def watch_dataset_runs(socket: WebSocket, after: Token = "", build: str = "") -> None:
    """Pushes the runs; `build` is the digest of the files that the page was made with."""
    state = socket.app.state

    async def read() -> PushedView:
        return PushedView(await _dataset_runs(state.scheduler, state.clock.now(), after))

    await push_view(socket, build, PartAddress("datasets/runs_part", after), read)


async def _dataset_runs(scheduler: Scheduler, now: datetime, after: str) -> DatasetRunsView:
    """One page of the finished runs. Each page also has all unfinished ones."""
    kind = run_pb2.RUN_KIND_DATASET
    wanted = [
        scheduler_pb2.ListRunsRequest(page_size=_PAGE_SIZE, kind=kind, state=state) for state in _UNFINISHED
    ]
    wanted.append(scheduler_pb2.ListRunsRequest(page_size=_PAGE_SIZE, kind=kind, page_token=after))
    *unfinished, listed = await asyncio.gather(*(scheduler.runs.ListRuns(request) for request in wanted))
    return DatasetRunsView(
        unfinished=[run_row(run) for found in unfinished for run in found.runs],
        finished=[run_row(run) for run in listed.runs if run.state not in _UNFINISHED],
        total=listed.total,
        after=after,
        following=listed.next_page_token,
        now=now,
    )


@router.get("/{dataset_id}")
async def show_dataset(  # noqa: PLR0917  # dependencies and parameters
    page: PageOf, scheduler: SchedulerCalls, now: Now, dataset_id: DatasetId, first: str = "", ask: str = ""
) -> Response:
    is_number = first.isascii() and first.isdecimal() and len(first) < len(str(JSON_INT_MAX))
    first_doc_id = int(first) if is_number else 0
    preview = dataset_pb2.PreviewDatasetRequest(
        dataset_id=dataset_id, first_doc_id=first_doc_id, row_count=_PREVIEWED
    )
    # The preview may be refused for a row behind the end only once the data set itself was found.
    found = await scheduler.datasets.GetDataset(dataset_pb2.GetDatasetRequest(dataset_id=dataset_id))
    previewed, runs = await asyncio.gather(
        scheduler.datasets.PreviewDataset(preview),
        newest_runs(scheduler, now, dataset_id=dataset_id),
    )
    view = DatasetView(
        dataset=dataset_listed(found.dataset),
        preview=[dataset_row(PreviewRow, row) for row in previewed.rows],
        first=first_doc_id,
        newest=runs,
        ask=ask,
    )
    # Where nothing is pushed, the runs are renewed as a part of the whole page.
    is_preview = page.is_part and page.target != "live"
    response = page.show("datasets/dataset", view, part="datasets/preview_part" if is_preview else "")
    if is_preview:
        path = f"/datasets/{quote(dataset_id)}"
        response.headers["HX-Push-Url"] = f"{path}?first={first_doc_id}" if first_doc_id else path
    return response


@router.websocket("/{dataset_id}/socket")
async def watch_runs_of_dataset(socket: WebSocket, dataset_id: DatasetId, build: str = "") -> None:
    """Pushes the newest runs over a data set."""
    state = socket.app.state

    async def read() -> PushedView:
        return PushedView(await newest_runs(state.scheduler, state.clock.now(), dataset_id=dataset_id))

    await push_view(socket, build, PartAddress("runs/newest_part", dataset_id), read)


@router.post("")
async def upload(page: PageOf, scheduler: SchedulerCalls, user: User, now: Now, request: Request) -> Response:
    """A form with one file. A script gets the address of the data set, or the part with the faults."""
    header = dataset_pb2.DatasetHeader(user=user, request_id=str(uuid.uuid4()), project_id=key_project())
    try:
        async with aclosing(upload_requests(request, header)) as requests:
            stored = await scheduler.datasets.UploadDataset(requests)
    except DomainError as error:
        if error.kind not in _REFUSED:
            raise
        refused = UploadView(problem=error.message, name=header.name)
    else:
        if stored.HasField("dataset"):
            rows = "1 row" if stored.dataset.row_count == 1 else f"{stored.dataset.row_count} rows"
            done = page.go(f"/datasets/{stored.dataset.dataset_id}", Notice(f"The file is stored: {rows}."))
            # A script goes there itself: it would otherwise fetch the page in place of the browser.
            done.status_code = 201 if page.is_part else done.status_code
            return done
        refused = UploadView(stored.faults, stored.fault_count, name=header.name)
    view = await dataset_list(scheduler, now, upload=refused)
    return page.show("datasets/list", view, part="datasets/faults_part", status=422)


@router.post("/preview")
async def preview(
    page: PageOf, scheduler: SchedulerCalls, user: User, now: Now, request: Request
) -> Response:
    """The first rows of a file, of which a script sends the beginning. Nothing is stored."""
    asked = await beginning_of(request, dataset_pb2.DatasetHeader(user=user))
    try:
        shown = await scheduler.datasets.PreviewUpload(asked)
    except DomainError as error:
        if error.kind not in _REFUSED:
            raise
        upload = UploadView(problem=error.message, name=asked.name)
    else:
        upload = UploadView(name=asked.name, mapped=mapped_view(shown, asked.mapping))
    view = await dataset_list(scheduler, now, upload=upload)
    return page.show("datasets/list", view, part="datasets/mapping_part")


@router.post("/mappings")
async def save_mapping(page: PageOf, scheduler: SchedulerCalls, now: Now, request: Request) -> Response:
    """Of the form of an upload; what stands behind the fields of the mapping is not read."""
    asked = await mapping_to_save(request)
    mapped = MappedView.of(asked.mapping, name=asked.name)
    try:
        await scheduler.datasets.SaveMapping(asked)
    except DomainError as error:
        if error.kind not in _UNSAVED:
            raise
        mapped = replace(mapped, problem=error.message)
    if not page.is_part and not mapped.problem:
        chosen = address("/datasets", {"mapping": asked.name})
        return page.go(chosen, Notice(f"The mapping {asked.name} is saved."))
    view = await dataset_list(scheduler, now, upload=UploadView(mapped=mapped))
    return page.show("datasets/list", view, part="datasets/mapping_part")


@router.post("/mappings/delete")
async def delete_mapping(
    page: PageOf, scheduler: SchedulerCalls, name: MappingName, project_id: Project = 0
) -> Response:
    request = dataset_pb2.DeleteMappingRequest(name=name, project_id=project_id)
    try:
        await scheduler.datasets.DeleteMapping(request)
    except DomainError as error:
        if error.kind not in _UNSAVED:
            raise
        return page.leave("/datasets", Notice(error.message, is_problem=True))
    return page.leave("/datasets", Notice(f"The mapping {name} is deleted."))


@router.post("/{dataset_id}/delete")
async def delete(page: PageOf, scheduler: SchedulerCalls, dataset_id: DatasetId) -> Response:
    try:
        await scheduler.datasets.DeleteDataset(dataset_pb2.DeleteDatasetRequest(dataset_id=dataset_id))
    except DomainError as error:
        if error.kind is not ErrorKind.CONFLICT:
            raise
        return page.go(f"/datasets/{dataset_id}", Notice(error.message, is_problem=True))
    return page.go("/datasets", Notice("The data set is deleted."))
