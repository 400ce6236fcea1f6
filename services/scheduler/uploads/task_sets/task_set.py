"""A set of tasks for rollouts as it is stored: its tasks, and their files by digest. It never changes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from services.common.errors import Fact
from services.scheduler.uploads.quotas.storage_use import StorageUse

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class TaskSet:
    """Objects under `prefix`: the tasks, and each file by its digest; `size_bytes` of all.

    `digest` is the SHA-256 of the tasks, which name their files by digest.
    """

    digest: str
    prefix: str
    size_bytes: int
    task_ids: tuple[str, ...]
    bundles: tuple[str, ...]

    @property
    def use(self) -> StorageUse:
        return StorageUse(bytes=self.size_bytes, files=1)


@dataclass(frozen=True, slots=True)
class CheckedTasks:
    """The tasks of an archive, stored; or why it was refused, in a sentence with its facts."""

    tasks: TaskSet | None = None
    problem: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TasksHeader:
    """Header of an upload. `overrides_json` is by the names of the tasks' folders."""

    name: str
    user: str
    overrides_json: Mapping[str, str] = field(default_factory=dict)


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def new_prefix(unique: str) -> str:
    return f"tasks/{unique}"


def tasks_key(prefix: str) -> str:
    return f"{prefix}/tasks"


def bundle_key(prefix: str, digest: str) -> str:
    return f"{prefix}/{digest}"
