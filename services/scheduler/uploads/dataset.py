"""A data set: an uploaded file, checked and stored as rows. Its content never changes."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import NewType

import orjson

from proctor.values.contract_enum import ContractEnum
from proctor.values.uploads.column_mapping import ColumnMapping
from services.scheduler.uploads.quotas.storage_use import StorageUse

DatasetId = NewType("DatasetId", str)

_DATASET_ID = re.compile(r"ds_[0-9a-f]{32}")


class DatasetFormat(ContractEnum):
    """File format of a data set."""

    JSONL = "jsonl", 1
    CSV = "csv", 2
    PARQUET = "parquet", 3
    TSV = "tsv", 4


@dataclass(frozen=True, slots=True)
class DatasetHeader:
    """Header of an upload. `format` None means detected from name and first bytes.

    `digest` is the SHA-256 of the mapping and the bytes, "" if the client did not send it.
    """

    name: str
    user: str
    format: DatasetFormat | None = None
    request_id: str = ""
    digest: str = ""
    project_id: int = 0
    mapping: ColumnMapping | None = None


@dataclass(frozen=True, slots=True)
class RowFacts:
    """Facts about all rows of a file. `endpoint` is "" if the rows name none."""

    row_count: int
    target_count: int
    models: tuple[str, ...]
    endpoint: str


@dataclass(frozen=True, slots=True)
class DatasetContent:
    """Rows stored under `prefix` in the object store, shared by data sets and files with the same content.

    What is in a declared project shares with nothing outside of it.

    `digest` is the SHA-256 of the `size_bytes` uploaded bytes. The rows take `stored_bytes`, compressed.
    """

    digest: str
    format: DatasetFormat
    size_bytes: int
    facts: RowFacts
    prefix: str
    stored_bytes: int

    @property
    def use(self) -> StorageUse:
        """The use of each data set that has the content, however many share it."""
        return StorageUse(bytes=self.stored_bytes, files=1, rows=self.facts.row_count)


@dataclass(frozen=True, slots=True)
class Dataset:
    dataset_id: DatasetId
    name: str
    user: str
    uploaded_at: datetime
    content: DatasetContent
    project_id: int = 0


@dataclass(frozen=True, slots=True)
class NamedContent:
    """Rows that a run can use, with their name."""

    name: str
    content: DatasetContent
    project_id: int = 0


@dataclass(frozen=True, slots=True)
class DatasetCursor:
    """The last data set of a page; the next page starts after it. `total` is counted for the first page."""

    uploaded_at: datetime
    dataset_id: DatasetId
    total: int


@dataclass(frozen=True, slots=True)
class DatasetPage:
    """Newest first. `next` is None on the last page."""

    datasets: tuple[Dataset, ...]
    total: int
    next: DatasetCursor | None


def is_dataset_id(text: str) -> bool:
    return _DATASET_ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """A stored row, counted from 0. `body_json` is the body of a chat or completions request."""

    doc_id: int
    row_id: str
    body_json: bytes
    target: str | None = None
    metadata_json: bytes = b""

    @property
    def size_bytes(self) -> int:
        texts = len(self.row_id) + len(self.target or "")
        return len(self.body_json) + len(self.metadata_json) + texts


def row_from_line(doc_id: int, line: bytes) -> DatasetRow:
    fields = orjson.loads(line)
    metadata = fields.get("metadata")
    return DatasetRow(
        doc_id=doc_id,
        row_id=fields["id"],
        body_json=orjson.dumps(fields["body"]),
        target=fields.get("target"),
        metadata_json=b"" if metadata is None else orjson.dumps(metadata),
    )
