"""Storage of a user, and its quota."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum

from services.scheduler.uploads.errors import ProjectStorageQuotaExceeded, StorageQuotaExceeded

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
class ProjectQuota:
    """The bytes that a project stores, and may store."""

    project_id: int
    used: int
    limit: int

    def check(self, added: int) -> None:
        """Raises `ProjectStorageQuotaExceeded` if `added` bytes do not fit beside what is stored."""
        if added > 0 and self.used + added > self.limit:
            raise ProjectStorageQuotaExceeded(
                project_id=self.project_id, used=self.used, limit=self.limit, added=added
            )


@dataclass(frozen=True, slots=True)
class StorageQuota:
    """A user's present storage, and its quota. `project` is None where none limits what is added."""

    user: str
    used: StorageUse
    limit: StorageUse
    project: ProjectQuota | None = None

    @property
    def full(self) -> str:
        """The user, or else the project, that has no byte left."""
        if self.used.bytes >= self.limit.bytes:
            return self.user
        project = self.project
        return f"project {project.project_id}" if project and project.used >= project.limit else ""

    def before(self, added: StorageUse) -> "StorageQuota":
        """The quota as it was before `added` was stored."""
        project = self.project and replace(self.project, used=self.project.used - added.bytes)
        return replace(self, used=self.used - added, project=project)

    def check(self, added: StorageUse) -> None:
        """Raises `StorageQuotaExceeded` if `added` does not fit beside what is stored."""
        if self.project:
            self.project.check(added.bytes)
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
