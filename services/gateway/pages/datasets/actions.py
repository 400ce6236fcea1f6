"""Actions of the pages of data sets: upload one, delete one."""

import uuid
from contextlib import aclosing

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from services.common.errors import DomainError, ErrorKind
from services.gateway.api.datasets.upload import upload_requests
from services.gateway.auth.identity import Now, User
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.pages.datasets.routes import DatasetId, dataset_list
from services.gateway.pages.datasets.view import UploadView
from services.gateway.pages.page import Notice, PageOf

# Of what is wrong with the file; the form shows the sentence.
_REFUSED = frozenset({ErrorKind.INVALID})

router = APIRouter(prefix="/datasets", include_in_schema=False)


@router.post("")
async def upload(page: PageOf, scheduler: SchedulerCalls, user: User, now: Now, request: Request) -> Response:
    """A form with one file. A script gets the address of the data set, or the part with the faults."""
    header = dataset_pb2.DatasetHeader(user=user, request_id=str(uuid.uuid4()))
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


@router.post("/{dataset_id}/delete")
async def delete(page: PageOf, scheduler: SchedulerCalls, dataset_id: DatasetId) -> Response:
    try:
        await scheduler.datasets.DeleteDataset(dataset_pb2.DeleteDatasetRequest(dataset_id=dataset_id))
    except DomainError as error:
        if error.kind is not ErrorKind.CONFLICT:
            raise
        return page.go(f"/datasets/{dataset_id}", Notice(error.message, is_problem=True))
    return page.go("/datasets", Notice("The data set is deleted."))
