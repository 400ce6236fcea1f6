"""Ports of sets of tasks: how an archive is read and its tasks written, and where the sets are recorded."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import BinaryIO, Protocol

from proctor.values.rollout import RolloutTask
from services.scheduler.uploads.task_sets.task_set import TaskSet

# An archive, its name, and overrides by the names of folders. Raises a DomainError for what is not a set.
ReadTasks = Callable[[BinaryIO, str, Mapping[str, str]], Sequence[RolloutTask]]
WriteTasks = Callable[[Sequence[RolloutTask]], bytes]


class TaskSetStore(Protocol):
    """Sets of tasks, and who uses them: a user who uploaded one, or a suite that was written of one.

    A prefix is unreferenced while no set has its objects.
    """

    async def register_prefix(self, prefix: str) -> None:
        """Marks the prefix as unreferenced. Called before the first object is stored under it."""
        ...

    async def add(self, tasks: TaskSet, user: str) -> str:
        """The prefix of the set: that of an equal one, where it is stored already.

        Raises `StorageQuotaExceeded`.
        """
        ...

    async def use(self, tasks_digest: str, user: str, suite_digest: str = "") -> str:
        """The prefix of a set, which the suite with this digest uses from now on.

        Without one it is kept for a while. Raises `TasksNotFound`.
        """
        ...

    async def prefix_of_bundle(self, digest: str) -> str | None:
        """A prefix under which the files with this digest are stored."""
        ...

    async def delete_unused(self, uploaded_before: datetime, suites_before: datetime) -> None:
        """Deletes uploads that no order used, and uses of suites that are not there, older than this.

        Prefixes of sets without a user and a suite are unreferenced then.
        """
        ...
