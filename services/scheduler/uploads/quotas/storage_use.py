"""Storage of a user, and its quota."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum

from services.scheduler.uploads.errors import StorageQuotaExceeded

# The largest of a bigint and of an int64 of a message.
_UNLIMITED = 2**63 - 1


class StorageKind(StrEnum):
    """A kind of what is stored. Files that users upload and those that batches write are two."""

    DATASETS = "datasets"
    FILES = "files"
    BATCH_OUTPUT = "batch_output"
    SUITES = "suites"
    TASKS = "tasks"
    ARTIFACTS = "artifacts"


@dataclass(frozen=True, slots=True)
class StorageUse:
    """Stored bytes, things that have an id and are deleted one by one, and rows of data sets and files."""

    bytes: int = 0
    files: int = 0
    rows: int = 0

    def __add__(self, other: "StorageUse") -> "StorageUse":
        return StorageUse(self.bytes + other.bytes, self.files + other.files, self.rows + other.rows)

    def __sub__(self, other: "StorageUse") -> "StorageUse":
        return StorageUse(self.bytes - other.bytes, self.files - other.files, self.rows - other.rows)


@dataclass(frozen=True, slots=True)
class StorageQuota:
    """A user's present storage, and its quota."""

    user: str
    used: StorageUse
    limit: StorageUse

    def check(self, added: StorageUse) -> None:
        """Raises `StorageQuotaExceeded` if `added` does not fit beside what is stored."""
        for each in fields(StorageUse):
            used, more, limit = (getattr(one, each.name) for one in (self.used, added, self.limit))
            if more > 0 and used + more > limit:
                raise StorageQuotaExceeded(user=self.user, used=used, limit=limit, unit=each.name, added=more)


NO_QUOTA = StorageQuota("", StorageUse(), StorageUse(_UNLIMITED, _UNLIMITED, _UNLIMITED))
# What an output file of a batch takes at least.
MIN_FILE = StorageUse(bytes=1, files=1)


@dataclass(frozen=True, slots=True)
class UserStorage:
    """`shares` has the use of each kind that the user stores."""

    user: str
    shares: Mapping[StorageKind, StorageUse]
    limit: StorageUse

    @property
    def quota(self) -> StorageQuota:
        return StorageQuota(self.user, sum(self.shares.values(), StorageUse()), self.limit)
