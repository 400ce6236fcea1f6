"""Finds stored tasks: for an order all of a set, for a worker files of a task part by part."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proctor.values.rollout import RolloutTask
from services.scheduler.uploads.errors import TasksNotFound
from services.scheduler.uploads.ports import ObjectStore
from services.scheduler.uploads.task_sets.postgres import PostgresTaskSets
from services.scheduler.uploads.task_sets.task_set import bundle_key, is_digest, tasks_key

PART_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FindBundle:
    """Files of a task by their digest. A worker knows it only if it was sent the task."""

    sets: PostgresTaskSets
    objects: ObjectStore

    async def find(self, digest: str, first_byte: int) -> bytes:
        """Returns at most `PART_BYTES` from a byte on. Raises `TasksNotFound`."""
        prefix = await self.sets.prefix_of_bundle(digest) if is_digest(digest) else None
        if prefix is None:
            raise TasksNotFound(tasks_digest=digest[:64])
        key = bundle_key(prefix, digest)
        return await asyncio.to_thread(self.objects.get_range, key, first_byte, PART_BYTES)


@dataclass(frozen=True, slots=True)
class FindStoredTasks:
    sets: PostgresTaskSets
    objects: ObjectStore
    read: Callable[[bytes], Sequence[RolloutTask]]

    async def find(self, tasks_digest: str, user: str) -> Sequence[RolloutTask]:
        """Raises `TasksNotFound`."""
        if not is_digest(tasks_digest):
            raise TasksNotFound(tasks_digest=tasks_digest[:64])
        prefix = await self.sets.use(tasks_digest, user)
        content = await asyncio.to_thread(self.objects.get, tasks_key(prefix))
        if hashlib.sha256(content).hexdigest() != tasks_digest:
            raise TasksNotFound(tasks_digest=tasks_digest)
        return self.read(content)

    async def keep_for_suite(self, tasks_digest: str, user: str, suite_digest: str) -> None:
        """Keeps the set as long as there is a suite with this digest."""
        await self.sets.use(tasks_digest, user, suite_digest)
