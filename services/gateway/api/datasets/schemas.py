"""Bodies of data sets."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field, JsonValue

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from services.gateway.http.presentation import json_value, present

Format = Literal["jsonl", "csv", "parquet"]


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
    format: Format
    size_bytes: int = Field(description="Size of the uploaded file")
    digest: str = Field(description="SHA-256 of the uploaded file")
    target_count: int = Field(description="Rows with a target")
    models: list[str] = Field(description="Models named in its lines, at most 20")
    endpoint: str | None = Field(description="Endpoint of its lines if they are batch requests; else null")


class DatasetPage(BaseModel):
    datasets: list[DatasetListed]
    total: int = Field(description="Over all pages")
    next_cursor: str | None


class DatasetRow(BaseModel):
    """A row as a model would get it."""

    row: int = Field(description="From 0")
    id: str
    body: JsonValue = Field(description="Body of /v1/chat/completions or /v1/completions")
    target: str | None
    metadata: JsonValue


class DatasetPreview(BaseModel):
    rows: list[DatasetRow]


class DatasetMessage(BaseModel):
    message: str


def dataset_listed(dataset: dataset_pb2.Dataset) -> DatasetListed:
    return present(DatasetListed, dataset, id=dataset.dataset_id, count=dataset.row_count)


def dataset_row(row: dataset_pb2.DatasetRow) -> DatasetRow:
    return present(DatasetRow, row, body=json_value(row.body_json), metadata=json_value(row.metadata_json))
