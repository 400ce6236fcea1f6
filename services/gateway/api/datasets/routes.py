"""Data sets: upload, list, preview and delete."""

from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, TypeVar

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, Field, JsonValue
from starlette.requests import Request

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.values.row_fields import MAX_UPLOAD_NAME_CHARACTERS
from proctor.values.uploads.column_mapping import MAX_COLUMN_CHARACTERS, MAX_PROMPT_CHARACTERS
from proctor.wire.enums import value_of
from services.gateway.api.datasets.mappings import MappingShown
from services.gateway.api.datasets.upload import beginning_of, upload_requests
from services.gateway.auth.identity import User
from services.gateway.auth.request_ids import RequestId
from services.gateway.backends.calls import Scheduler, SchedulerCalls
from services.gateway.http.errors import DatasetFault, DatasetRefused
from services.gateway.http.parameters import JSON_INT_MAX, Cursor, ProjectQuery, Text
from services.gateway.http.paths import DATASETS, UPLOAD_PREVIEWS, UPLOADS
from services.gateway.http.presentation import Done, json_value, present
from services.gateway.http.problem import problems
from services.gateway.http.project_names import ProjectName

R = TypeVar("R", bound="DatasetRowShown")

DatasetFormatName = Literal["jsonl", "csv", "tsv", "parquet"]
_CONTENT = {
    "type": "string",
    "format": "binary",
    "description": "JSONL, CSV, TSV or Parquet; gzip and zstd too",
}
_MAPPING = {
    "prompt": {"type": "string", "description": "Prompt of a row, with {{column}}; before the file"},
    "target": {"type": "string", "description": "Column with the target; before the file"},
    "id": {"type": "string", "description": "Column with the id; before the file"},
}
# FastAPI cannot derive the description of a streamed body.
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {**_MAPPING, "file": _CONTENT},
                }
            },
            "application/octet-stream": {
                "schema": _CONTENT | {"description": "The file itself, with ?name="}
            },
        },
    }
}
DatasetIdPath = Annotated[Text, Path(description='"ds_…"', max_length=255)]
FirstRow = Annotated[int, Query(ge=0, le=JSON_INT_MAX, description="From 0")]
RowCount = Annotated[int, Query(ge=1, le=100, description="Large rows may come in smaller pages")]
DatasetPageSize = Annotated[int, Query(ge=1, le=500)]

router = APIRouter(tags=["datasets"])
_ONE = problems(404, 422, 503)


class DatasetUploaded(BaseModel):
    dataset_id: str = Field(description='"ds_…"')
    name: str
    count: int = Field(description="Rows")
    uploaded_at: datetime


class DatasetListed(BaseModel):
    id: str = Field(description='"ds_…"')
    name: str
    count: int = Field(description="Rows")
    uploaded_at: datetime
    user: str
    format: DatasetFormatName
    size_bytes: int = Field(description="Size of the uploaded file")
    digest: str = Field(description="SHA-256 of the uploaded file")
    target_count: int = Field(description="Rows with a target")
    models: list[str] = Field(description="Models named in its lines, at most 20")
    endpoint: str | None = Field(description="Endpoint of its lines if they are batch requests; else null")
    project_id: int = Field(description="0: none")
    project_name: ProjectName


class DatasetPageShown(BaseModel):
    datasets: list[DatasetListed]
    total: int = Field(description="Over all pages; 1001 where there are more than 1,000")
    next_cursor: str | None


class DatasetRowShown(BaseModel):
    """A row as a model would get it."""

    row: int = Field(description="From 0")
    id: str
    body: JsonValue = Field(description="Body of /v1/chat/completions or /v1/completions")
    target: str | None
    metadata: JsonValue


class DatasetPreview(BaseModel):
    rows: list[DatasetRowShown]


def dataset_listed(dataset: dataset_pb2.Dataset) -> DatasetListed:
    return present(DatasetListed, dataset, id=dataset.dataset_id, count=dataset.row_count)


def dataset_row(body: type[R], row: dataset_pb2.DatasetRow) -> R:
    return present(
        body,
        row,
        row=row.doc_id,
        id=row.row_id,
        body=json_value(row.body_json),
        metadata=json_value(row.metadata_json),
    )


@dataclass(frozen=True, slots=True)
class UploadParameters:
    """Name, format and project of a file."""

    name: Annotated[
        Text, Query(max_length=MAX_UPLOAD_NAME_CHARACTERS, description="Replaces the name of the file")
    ] = ""
    form: Annotated[
        DatasetFormatName | None,
        Query(alias="format", description="Detected from the name and the content if unset"),
    ] = None
    project_id: ProjectQuery = 0
    prompt: Annotated[
        Text,
        Query(
            max_length=MAX_PROMPT_CHARACTERS,
            description="Prompt of a row, with {{column}} for each column that it shows",
        ),
    ] = ""
    target: Annotated[Text, Query(max_length=MAX_COLUMN_CHARACTERS, description="Column with the target")] = (
        ""
    )
    row_id: Annotated[
        Text, Query(alias="id", max_length=MAX_COLUMN_CHARACTERS, description="Column with the id")
    ] = ""
    mapping: Annotated[
        Text,
        Query(
            max_length=100,
            description="Name of a saved mapping; the others replace its fields",
        ),
    ] = ""

    async def to_proto(self, scheduler: Scheduler, user: str, request_id: str) -> dataset_pb2.DatasetHeader:
        """Reads the saved mapping that is named."""
        mapping = dataset_pb2.ColumnMapping()
        if self.mapping:
            named = dataset_pb2.GetMappingRequest(name=self.mapping, project_id=self.project_id)
            mapping = (await scheduler.datasets.GetMapping(named)).saved.mapping
        mapping.MergeFrom(dataset_pb2.ColumnMapping(prompt=self.prompt, target=self.target, id=self.row_id))
        return dataset_pb2.DatasetHeader(
            mapping=mapping if mapping.ByteSize() else None,
            name=self.name,
            user=user,
            format=value_of(dataset_pb2.DatasetFormat, self.form or "unspecified"),
            request_id=request_id,
            project_id=self.project_id,
        )


@router.post(
    UPLOADS,
    responses=problems(400, 404, 408, 409, 413, 414, 415, 422, 503),
    openapi_extra=_BODY,
    summary="Upload a data set; the faulty lines of an invalid file are listed",
)
async def upload(
    scheduler: SchedulerCalls,
    user: User,
    request: Request,
    query: Annotated[UploadParameters, Depends()],
    request_id: RequestId,
) -> DatasetUploaded:
    header = await query.to_proto(scheduler, user, request_id)
    async with aclosing(upload_requests(request, header)) as requests:
        response = await scheduler.datasets.UploadDataset(requests)
    if not response.HasField("dataset"):
        faults = [DatasetFault(each.line, each.field, each.problem) for each in response.faults]
        raise DatasetRefused(faults, response.fault_count)
    return present(DatasetUploaded, response.dataset, count=response.dataset.row_count)


class FaultShown(BaseModel):
    line: int = Field(description="0 for the file")
    field: str
    problem: str


class UploadPreview(BaseModel):
    """The first rows of a file as an upload would store them."""

    format: DatasetFormatName
    columns: list[str]
    mapping: MappingShown | None = Field(description="The one that was applied; null for the usual fields")
    is_proposed: bool = Field(description="An upload applies the mapping only if it is given there")
    rows: list[DatasetRowShown]
    faults: list[FaultShown]


def upload_preview(shown: dataset_pb2.PreviewUploadResponse) -> UploadPreview:
    mapping = shown.mapping
    return present(
        UploadPreview,
        shown,
        mapping=MappingShown(prompt=mapping.prompt, target=mapping.target, id=mapping.id)
        if shown.HasField("mapping")
        else None,
        rows=[dataset_row(DatasetRowShown, row) for row in shown.rows],
        faults=[FaultShown(line=each.line, field=each.field, problem=each.problem) for each in shown.faults],
    )


@router.post(
    UPLOAD_PREVIEWS,
    responses=problems(400, 404, 408, 413, 414, 415, 422, 503),
    openapi_extra=_BODY,
    summary="The first rows of a file as an upload would store them, with a mapping of its columns",
)
async def preview_upload(
    scheduler: SchedulerCalls,
    user: User,
    request: Request,
    query: Annotated[UploadParameters, Depends()],
) -> UploadPreview:
    asked = await beginning_of(request, await query.to_proto(scheduler, user, ""))
    return upload_preview(await scheduler.datasets.PreviewUpload(asked))


@router.get(DATASETS, responses=problems(400, 422, 503), summary="List data sets, newest first")
async def list_datasets(
    scheduler: SchedulerCalls, limit: DatasetPageSize = 100, cursor: Cursor = ""
) -> DatasetPageShown:
    request = dataset_pb2.ListDatasetsRequest(page_size=limit, page_token=cursor)
    page = await scheduler.datasets.ListDatasets(request)
    return DatasetPageShown(
        datasets=[dataset_listed(dataset) for dataset in page.datasets],
        total=page.total,
        next_cursor=page.next_page_token or None,
    )


@router.get(f"{DATASETS}/{{dataset_id}}", responses=_ONE, summary="One data set")
async def get(scheduler: SchedulerCalls, dataset_id: DatasetIdPath) -> DatasetListed:
    request = dataset_pb2.GetDatasetRequest(dataset_id=dataset_id)
    return dataset_listed((await scheduler.datasets.GetDataset(request)).dataset)


@router.get(f"{DATASETS}/{{dataset_id}}/preview", responses=_ONE, summary="Rows as a model would get them")
async def preview(
    scheduler: SchedulerCalls, dataset_id: DatasetIdPath, first: FirstRow = 0, rows: RowCount = 10
) -> DatasetPreview:
    request = dataset_pb2.PreviewDatasetRequest(dataset_id=dataset_id, first_doc_id=first, row_count=rows)
    response = await scheduler.datasets.PreviewDataset(request)
    return DatasetPreview(rows=[dataset_row(DatasetRowShown, row) for row in response.rows])


@router.delete(
    f"{DATASETS}/{{dataset_id}}",
    responses=problems(404, 409, 422, 503),
    summary="Delete a data set that no run uses",
)
async def delete(scheduler: SchedulerCalls, dataset_id: DatasetIdPath) -> Done:
    await scheduler.datasets.DeleteDataset(dataset_pb2.DeleteDatasetRequest(dataset_id=dataset_id))
    return Done(message=f"Data set {dataset_id} deleted")
