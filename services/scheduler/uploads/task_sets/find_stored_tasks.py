"""Finds stored tasks for an order."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proctor.values.rollout import RolloutTask
from services.scheduler.uploads.errors import TasksNotFound
from services.scheduler.uploads.ports import ObjectStore
from services.scheduler.uploads.task_sets.ports import TaskSetStore
from services.scheduler.uploads.task_sets.task_set import is_digest, tasks_key


@dataclass(frozen=True, slots=True)
class FindStoredTasks:
    sets: TaskSetStore
    objects: ObjectStore
    read: Callable[[bytes], Sequence[RolloutTask]]

    async def tasks(self, digest: str, user: str) -> Sequence[RolloutTask]:
        """Raises `TasksNotFound`."""
        if not is_digest(digest):
            raise TasksNotFound(tasks_digest=digest[:64])
        prefix = await self.sets.use(digest, user)
        content = await asyncio.to_thread(self.objects.get, tasks_key(prefix))
        if hashlib.sha256(content).hexdigest() != digest:
            raise TasksNotFound(tasks_digest=digest)
        return self.read(content)

    async def keep_for_suite(self, digest: str, user: str, document: str) -> None:
        """Keeps the set as long as there is a suite whose document has this digest."""
        await self.sets.use(digest, user, document)
