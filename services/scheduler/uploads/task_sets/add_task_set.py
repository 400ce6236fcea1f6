"""Adds a set of tasks for rollouts: checked and stored in a process of its own, or not at all."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

from services.common.checked_fields import checked_text, refuse
from services.common.errors import DomainError, ErrorKind
from services.common.requests.request_fields import user_problem
from services.scheduler.uploads.concurrent_uploads import Uploads
from services.scheduler.uploads.delete_uploads import try_to_delete_objects
from services.scheduler.uploads.errors import StorageQuotaExceeded
from services.scheduler.uploads.ports import CheckJob, ObjectStore
from services.scheduler.uploads.quotas.ports import StorageSource
from services.scheduler.uploads.quotas.storage_use import MIN_FILE, StorageQuota
from services.scheduler.uploads.task_sets.check_task_archive import TaskArchiveCheck
from services.scheduler.uploads.task_sets.postgres import PostgresTaskSets
from services.scheduler.uploads.task_sets.task_set import CheckedTasks, TaskSet, TasksHeader, new_prefix


class TasksRefused(DomainError, kind=ErrorKind.INVALID, reason="INVALID_TASK_FOLDER"):
    """{problem}"""

    def __init__(self, checked: CheckedTasks) -> None:
        super().__init__(problem=checked.problem)
        self.facts = dict(checked.facts)


@dataclass(frozen=True, slots=True)
class AddTaskSet:
    """`program` is the module that does a `TaskArchiveCheck` in a process.

    `new_id` gives an id that no other set has.
    """

    program: str
    max_bytes: int
    sets: PostgresTaskSets
    objects: ObjectStore
    uploads: Uploads
    storage: StorageSource
    new_id: Callable[[], str]

    async def add(self, header: TasksHeader, chunks: AsyncIterator[bytes]) -> TaskSet:
        """Raises `TasksRefused`, `TooManyUploads`, `StorageQuotaExceeded`. Equal sets are stored once."""
        checked_text("header.name", header.name)
        refuse(user_problem(header.user))
        with self.uploads.slot(header.user):
            quota = (await self.storage.of(header.user)).quota
            quota.check(MIN_FILE)
            prefix = new_prefix(self.new_id())
            await self.sets.register_prefix(prefix)
            tasks = await self._checked(header, chunks, prefix, quota)
            try:
                # If this fails in another way, the set may be stored or not; if not, it is collected later.
                stored = await self.sets.add(tasks, header.user)
            except StorageQuotaExceeded:
                await self._delete(prefix)
                raise
            if stored != prefix:
                await self._delete(prefix)
            return tasks

    async def _checked(
        self, header: TasksHeader, chunks: AsyncIterator[bytes], prefix: str, quota: StorageQuota
    ) -> TaskSet:
        """Deletes what was stored of an upload that fails."""
        check = TaskArchiveCheck(header=header, prefix=prefix, quota=quota, max_bytes=self.max_bytes)
        tasks = None
        try:
            job = CheckJob(self.program, check, CheckedTasks)
            checked = await self.uploads.run_check(chunks, job, self.objects, (prefix,))
            if checked.tasks is None:
                raise TasksRefused(checked)
            # The process reads a hostile file: where it stored is not its to say.
            tasks = replace(checked.tasks, prefix=prefix)
            return tasks
        finally:
            if tasks is None:
                await self._delete(prefix)

    async def _delete(self, prefix: str) -> None:
        await asyncio.to_thread(try_to_delete_objects, self.objects, prefix)
