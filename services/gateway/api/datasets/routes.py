"""Data sets over HTTP: upload, list, look into, delete."""

import uuid
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query
from starlette.requests import Request

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from services.gateway.api.datasets.schemas import (
    FORMATS,
    DatasetListed,
    DatasetMessage,
    DatasetPage,
    DatasetPreview,
    DatasetUploaded,
    Format,
    dataset_fault,
    dataset_listed,
    dataset_row,
    dataset_uploaded,
)
from services.gateway.api.datasets.upload import Upload, upload_pieces
from services.gateway.auth.identity import Identity
from services.gateway.backends.scheduler import DatasetBackend
from services.gateway.errors.gateway_errors import DatasetRefused
from services.gateway.errors.http_problem import problems
from services.gateway.http.fields import Text
from services.gateway.paths import DATASETS, UPLOADS

_INT64_MAX = 2**63 - 1
_CONTENT = {"type": "string", "format": "binary", "description": "JSONL, CSV or Parquet; gzip and zstd too"}
# A body that is read as it comes has no signature that FastAPI could derive this from.
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {"type": "object", "required": ["file"], "properties": {"file": _CONTENT}}
            },
            "application/octet-stream": {
                "schema": _CONTENT | {"description": "The file as it is, with ?name="}
            },
        },
    }
}

DatasetId = Annotated[Text, Path(description='"ds_…"', max_length=255)]
FirstRow = Annotated[int, Query(ge=0, le=_INT64_MAX, description="From 0")]
RowCount = Annotated[int, Query(ge=1, le=100, description="Fewer come where they are heavy")]
PageSize = Annotated[int, Query(ge=1, le=500)]
Cursor = Annotated[Text, Query(description="next_cursor of the page before")]


class UploadQuery:
    """What may be said of a file beside its content."""

    def __init__(
        self,
        name: Annotated[Text, Query(max_length=255, description="Instead of the file's own")] = "",
        form: Annotated[
            Format | None, Query(alias="format", description="Told from the name if unset")
        ] = None,
        idempotency_key: Annotated[
            uuid.UUID | None, Header(description="The same again finds the data set of the first")
        ] = None,
    ) -> None:
        self.name = name
        self.format = FORMATS[form] if form else dataset_pb2.DATASET_FORMAT_UNSPECIFIED
        self.request_id = str(idempotency_key or uuid.uuid4())


class DatasetApi:
    """The handlers, with what they ask."""

    def __init__(self, datasets: DatasetBackend, identity: Identity) -> None:
        self._datasets = datasets
        self._identity = identity

    def router(self) -> APIRouter:
        router = APIRouter(tags=["datasets"])
        router.post(
            UPLOADS,
            responses=problems(408, 413, 422, 503),
            openapi_extra=_BODY,
            summary="Upload a data set; every faulty line is named, and nothing of a refused file is kept",
        )(self.upload)
        router.get(DATASETS, responses=problems(400, 422, 503), summary="List data sets, newest first")(
            self.list_datasets
        )
        one = problems(404, 422, 503)
        router.get(f"{DATASETS}/{{dataset_id}}", responses=one, summary="One data set")(self.get)
        router.get(
            f"{DATASETS}/{{dataset_id}}/preview", responses=one, summary="Rows as a model would be asked"
        )(self.preview)
        router.delete(
            f"{DATASETS}/{{dataset_id}}",
            responses=problems(404, 409, 422, 503),
            summary="Delete one that no run uses",
        )(self.delete)
        return router

    async def upload(self, request: Request, query: Annotated[UploadQuery, Depends()]) -> DatasetUploaded:
        user = await self._identity.user(request)
        upload = Upload(name=query.name, user=user, format=query.format, request_id=query.request_id)
        async with aclosing(upload_pieces(request, upload)) as pieces:
            response = await self._datasets.upload(pieces)
        if not response.HasField("dataset"):
            faults = [dataset_fault(fault) for fault in response.faults]
            raise DatasetRefused(faults, response.fault_count)
        return dataset_uploaded(response.dataset)

    async def list_datasets(self, limit: PageSize = 100, cursor: Cursor = "") -> DatasetPage:
        page = await self._datasets.list_page(limit, cursor)
        return DatasetPage(
            datasets=[dataset_listed(dataset) for dataset in page.datasets],
            total=page.total,
            next_cursor=page.next_page_token or None,
        )

    async def get(self, dataset_id: DatasetId) -> DatasetListed:
        return dataset_listed(await self._datasets.get(dataset_id))

    async def preview(
        self, dataset_id: DatasetId, first: FirstRow = 0, rows: RowCount = 10
    ) -> DatasetPreview:
        request = dataset_pb2.PreviewDatasetRequest(dataset_id=dataset_id, first_row=first, row_count=rows)
        return DatasetPreview(rows=[dataset_row(row) for row in await self._datasets.preview(request)])

    async def delete(self, dataset_id: DatasetId) -> DatasetMessage:
        await self._datasets.delete(dataset_id)
        return DatasetMessage(message=f"Data set {dataset_id} deleted")
