"""Finds files of a task for a worker, part by part."""

import asyncio
from dataclasses import dataclass

from services.scheduler.uploads.errors import TasksNotFound
from services.scheduler.uploads.ports import ObjectStore
from services.scheduler.uploads.task_sets.ports import TaskSetStore
from services.scheduler.uploads.task_sets.task_set import bundle_key, is_digest

PART_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FindBundle:
    """Files of a task by their digest: who has that was sent the task."""

    sets: TaskSetStore
    objects: ObjectStore

    async def find(self, digest: str, first_byte: int) -> bytes:
        """Returns at most `PART_BYTES` from a byte on. Raises `TasksNotFound`."""
        prefix = await self.sets.prefix_of_bundle(digest) if is_digest(digest) else None
        if prefix is None:
            raise TasksNotFound(tasks_digest=digest[:64])
        key = bundle_key(prefix, digest)
        return await asyncio.to_thread(self.objects.get_range, key, first_byte, PART_BYTES)
