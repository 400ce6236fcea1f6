"""Bodies of data sets over HTTP.
Data sets, their rows and what is wrong with a file, from their messages.
"""

import json
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, Field, JsonValue

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from services.gateway.errors.gateway_errors import DatasetFault

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
    size_bytes: int = Field(description="Of the file as it was uploaded")
    digest: str = Field(description="SHA-256 of the file as it was uploaded")
    target_count: int = Field(description="Rows that say what is expected")
    models: list[str] = Field(description="Models that its lines name, at most 20")
    endpoint: str | None = Field(description="Where its lines are requests of a batch; else null")


class DatasetPage(BaseModel):
    datasets: list[DatasetListed]
    total: int = Field(description="Over all pages")
    next_cursor: str | None


class DatasetRow(BaseModel):
    """A row as a model would be asked."""

    row: int = Field(description="From 0")
    id: str
    body: JsonValue = Field(description="Of /v1/chat/completions or /v1/completions")
    target: str | None
    metadata: JsonValue


class DatasetPreview(BaseModel):
    rows: list[DatasetRow]


class DatasetMessage(BaseModel):
    message: str


FORMATS: dict[Format, dataset_pb2.DatasetFormat.ValueType] = {
    "jsonl": dataset_pb2.DATASET_FORMAT_JSONL,
    "csv": dataset_pb2.DATASET_FORMAT_CSV,
    "parquet": dataset_pb2.DATASET_FORMAT_PARQUET,
}
_WORDS: dict[int, Format] = {number: word for word, number in FORMATS.items()}


def dataset_uploaded(dataset: dataset_pb2.Dataset) -> DatasetUploaded:
    return DatasetUploaded(
        dataset_id=dataset.dataset_id,
        name=dataset.name,
        count=dataset.row_count,
        uploaded_at=dataset.uploaded_at.ToDatetime(UTC),
    )


def dataset_listed(dataset: dataset_pb2.Dataset) -> DatasetListed:
    return DatasetListed(
        id=dataset.dataset_id,
        name=dataset.name,
        count=dataset.row_count,
        uploaded_at=dataset.uploaded_at.ToDatetime(UTC),
        user=dataset.user,
        format=_WORDS[dataset.format],
        size_bytes=dataset.size_bytes,
        digest=dataset.digest,
        target_count=dataset.target_count,
        models=list(dataset.models),
        endpoint=dataset.endpoint or None,
    )


def dataset_row(row: dataset_pb2.DatasetRow) -> DatasetRow:
    return DatasetRow(
        row=row.row,
        id=row.id,
        body=_json(row.body_json),
        target=row.target if row.HasField("target") else None,
        metadata=_json(row.metadata_json),
    )


def dataset_fault(fault: dataset_pb2.DatasetFault) -> DatasetFault:
    return DatasetFault(fault.line, fault.field, fault.problem)


def _json(text: str) -> JsonValue:
    value: JsonValue = json.loads(text) if text else None
    return value
