"""Stores parts of artifacts that workers send."""

import asyncio
from dataclasses import dataclass, field

from services.common.clock import Clock
from services.scheduler.rollouts.artifacts.artifact import MAX_EXECUTIONS, ArtifactPart
from services.scheduler.rollouts.artifacts.errors import ArtifactRefused
from services.scheduler.rollouts.artifacts.ports import ArtifactStore
from services.scheduler.uploads.ports import ObjectStore
from services.scheduler.uploads.quotas.ports import StorageSource

# A user who has no room may exceed the limit by what workers store in this time.
_ROOM_SECONDS = 30.0
_REMEMBERED_USERS = 1000


@dataclass(frozen=True, slots=True)
class StoreArtifact:
    """Summing up a user's storage for each part would cost more than the part."""

    artifacts: ArtifactStore
    objects: ObjectStore
    storage: StorageSource
    clock: Clock
    _rooms: dict[str, tuple[float, bool]] = field(default_factory=dict)

    async def store(self, part: ArtifactPart, epoch: int, content: bytes) -> None:
        """Raises `ArtifactRefused`."""
        if problem := part.problem(len(content)):
            raise ArtifactRefused(problem=problem)
        user = await self.artifacts.owner(part.run_id)
        if user is None:
            raise ArtifactRefused(problem="its run is deleted.")
        if not await self._has_room(user):
            raise ArtifactRefused(problem=f"{user} has no room left. Delete something or ask an operator.")
        if not await self.artifacts.add(part, epoch, user, len(content)):
            raise ArtifactRefused(problem=f"its run is over, or its rollout has {MAX_EXECUTIONS} executions.")
        await asyncio.to_thread(self.objects.put, part.key, [content])
        await self.artifacts.set_stored(part, len(content))

    async def _has_room(self, user: str) -> bool:
        until, has_room = self._rooms.get(user, (0.0, False))
        if self.clock.monotonic() >= until:
            quota = (await self.storage.of(user)).quota
            has_room = quota.used.bytes < quota.limit.bytes
            if len(self._rooms) >= _REMEMBERED_USERS:
                self._rooms.clear()
            self._rooms[user] = (self.clock.monotonic() + _ROOM_SECONDS, has_room)
        return has_room
