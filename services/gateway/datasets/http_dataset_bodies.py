"""Bodies of data sets over HTTP."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field, JsonValue

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
