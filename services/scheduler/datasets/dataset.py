"""A data set: a file that a user uploaded, checked and kept as rows. Its content never changes."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType

DatasetId = NewType("DatasetId", str)

MAX_NAME_LETTERS = 255
_DATASET_ID = re.compile(r"ds_[0-9a-f]{32}")


class DatasetFormat(StrEnum):
    """How the lines of a file are written."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True)
class DatasetHeader:
    """What is said of a file before its first byte. `format` None: told from its name and first bytes.

    `digest`: SHA-256 of its bytes, "" where nobody said it.
    """

    name: str
    user: str
    format: DatasetFormat | None = None
    request_id: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What all rows of a file together say. `endpoint` is "" where they name none."""

    row_count: int
    target_count: int
    models: tuple[str, ...]
    endpoint: str


@dataclass(frozen=True, slots=True)
class DatasetContent:
    """Rows as they are kept, under `prefix` in the object store. Data sets and files of one content share it.

    `digest` is the SHA-256 of the `size_bytes` that were uploaded.
    """

    digest: str
    format: DatasetFormat
    size_bytes: int
    facts: RowFacts
    prefix: str


@dataclass(frozen=True, slots=True)
class Dataset:
    dataset_id: DatasetId
    name: str
    user: str
    uploaded_at: datetime
    content: DatasetContent


@dataclass(frozen=True, slots=True)
class NamedContent:
    """Rows that a run can be over, and what they are called."""

    name: str
    content: DatasetContent


@dataclass(frozen=True, slots=True)
class DatasetCursor:
    """The last one of a page: the next begins behind it. `total` is what the first page counted."""

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
