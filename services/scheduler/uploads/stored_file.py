"""A file of the Files API: its bytes unchanged, and its faults or rows. It never changes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NewType

from proctor.values.contract_enum import ContractEnum
from proctor.values.openai import MAX_EXPIRY_SECONDS, MIN_EXPIRY_SECONDS
from services.scheduler.uploads.dataset import DatasetContent
from services.scheduler.uploads.faults import DatasetFault
from services.scheduler.uploads.quotas.storage_use import StorageUse

FileId = NewType("FileId", str)

_FILE_ID = re.compile(r"file-[0-9a-f]{32}")


class FilePurpose(ContractEnum):
    """Purpose of a file: input or output of a batch."""

    BATCH = "batch", 1
    BATCH_OUTPUT = "batch_output", 2


@dataclass(frozen=True, slots=True)
class FileHeader:
    """Header of an upload. `expires_after_seconds` None means that the file does not expire."""

    name: str
    user: str
    request_id: str = ""
    expires_after_seconds: int | None = None
    project_id: int = 0


@dataclass(frozen=True, slots=True)
class FileFaults:
    """The first faults by line, and their number."""

    first: Sequence[DatasetFault] = ()
    count: int = 0


@dataclass(frozen=True, slots=True)
class StoredFile:
    """`size_bytes` bytes under `prefix` in the object store. `content` has the rows of valid batch input."""

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
    project_id: int = 0

    @property
    def use(self) -> StorageUse:
        """Its bytes, and its rows if it has any."""
        rows = self.content.use if self.content else StorageUse(files=1)
        return rows + StorageUse(bytes=self.size_bytes)

    def has_expired(self, now: datetime) -> bool:
        """It may still be stored: until it is deleted, and as long as a batch reads it."""
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True)
class FileList:
    """A page of files to list: newest first unless ascending, after the file `after` if given."""

    size: int
    after: FileId | None = None
    purpose: FilePurpose | None = None
    is_ascending: bool = False


@dataclass(frozen=True, slots=True)
class FilePage:
    files: Sequence[StoredFile]
    has_more: bool


def expiry_problem(field: str, seconds: int | None) -> str:
    """Returns why a lifetime is not allowed, "" if it is. None means that the file does not expire."""
    if seconds is None or MIN_EXPIRY_SECONDS <= seconds <= MAX_EXPIRY_SECONDS:
        return ""
    allowed = f"at least {MIN_EXPIRY_SECONDS} and at most {MAX_EXPIRY_SECONDS}"
    return f"{field} is {seconds}, but must be {allowed}. Leave it out to keep what is written."


def is_file_id(text: str) -> bool:
    return _FILE_ID.fullmatch(text) is not None


def bytes_prefix(file_id: FileId) -> str:
    return f"files/{file_id}"


def rows_prefix(file_id: FileId) -> str:
    """Separate from the bytes, because data sets with the same content may keep the rows longer."""
    return f"datasets/{file_id}"
