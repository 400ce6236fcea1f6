"""A file of the Files API: bytes that are kept as they came, and what was found in them. It never changes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType

from services.scheduler.datasets.checking.faults import DatasetFault
from services.scheduler.datasets.dataset import DatasetContent

FileId = NewType("FileId", str)

LEAST_EXPIRY_SECONDS = 3600
MOST_EXPIRY_SECONDS = 30 * 24 * 3600
_FILE_ID = re.compile(r"file-[0-9a-f]{32}")


class FilePurpose(StrEnum):
    """What a file is for: read by batches, or written by one."""

    BATCH = "batch"
    BATCH_OUTPUT = "batch_output"


@dataclass(frozen=True, slots=True)
class FileHeader:
    """What is said of a file before its first byte. `expires_after_seconds` None: it stays."""

    name: str
    user: str
    request_id: str = ""
    expires_after_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class FileFaults:
    """The first of them by line, and how many there are."""

    first: Sequence[DatasetFault] = ()
    count: int = 0


@dataclass(frozen=True, slots=True)
class StoredFile:
    """`size_bytes` bytes under `prefix` in the object store. `content`: its rows, of input without faults."""

    file_id: FileId
    name: str
    user: str
    purpose: FilePurpose
    size_bytes: int
    created_at: datetime
    prefix: str
    expires_at: datetime | None = None
    content: DatasetContent | None = None
    faults: FileFaults = FileFaults()


@dataclass(frozen=True, slots=True)
class FileList:
    """What of all files is listed: the newest first, unless ascending; behind `after` where it is given."""

    size: int
    after: FileId | None = None
    purpose: FilePurpose | None = None
    is_ascending: bool = False


@dataclass(frozen=True, slots=True)
class FilePage:
    files: Sequence[StoredFile]
    has_more: bool


def expiry_problem(field: str, seconds: int | None) -> str:
    """Why a file cannot go away so long after it was made; "" where it can. None: it stays."""
    if seconds is None or LEAST_EXPIRY_SECONDS <= seconds <= MOST_EXPIRY_SECONDS:
        return ""
    allowed = f"at least {LEAST_EXPIRY_SECONDS} and at most {MOST_EXPIRY_SECONDS}"
    return f"{field} is {seconds}, but must be {allowed}. Leave it out to keep what is written."


def is_file_id(text: str) -> bool:
    return _FILE_ID.fullmatch(text) is not None


def bytes_prefix(file_id: FileId) -> str:
    return f"files/{file_id}"


def rows_prefix(file_id: FileId) -> str:
    """Apart from the bytes: data sets of the same content may keep its rows longer."""
    return f"datasets/{file_id}"
