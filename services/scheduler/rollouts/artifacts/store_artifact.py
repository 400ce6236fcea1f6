"""Stores parts of artifacts that workers send."""

import asyncio
from dataclasses import dataclass, field

from services.common.clock import Clock
from services.common.errors import DomainError, ErrorKind
from services.scheduler.rollouts.artifacts.artifact import MAX_EXECUTIONS, ArtifactPart
from services.scheduler.rollouts.artifacts.postgres import PostgresArtifacts
from services.scheduler.uploads.ports import ObjectStore
from services.scheduler.uploads.quotas.ports import StorageSource

# Who has no room may exceed the limit by what workers store in this time.
_ROOM_SECONDS = 30.0
_MAX_CACHED_OWNERS = 1000


class ArtifactRefused(DomainError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """The artifact is not stored: {problem}"""


@dataclass(frozen=True, slots=True)
class StoreArtifact:
    """Summing up the storage of a user and a project for each part would cost more than the part."""

    artifacts: PostgresArtifacts
    objects: ObjectStore
    storage: StorageSource
    clock: Clock
    _rooms: dict[tuple[str, int], tuple[float, str]] = field(default_factory=dict)

    async def store(self, part: ArtifactPart, epoch: int, content: bytes) -> None:
        """Raises `ArtifactRefused`."""
        if problem := part.problem(len(content)):
            raise ArtifactRefused(problem=problem)
        owner = await self.artifacts.owner(part.run_id)
        if owner is None:
            raise ArtifactRefused(problem="its run is deleted.")
        if full := await self._full(owner):
            raise ArtifactRefused(problem=f"{full} has no room left. Delete something or ask an operator.")
        if not await self.artifacts.add(part, epoch, owner[0], len(content)):
            raise ArtifactRefused(
                problem=f"its run is finished, or its rollout has {MAX_EXECUTIONS} executions."
            )
        await asyncio.to_thread(self.objects.put, part.key, [content])
        await self.artifacts.set_stored(part, len(content))

    async def _full(self, owner: tuple[str, int]) -> str:
        """The user or the project that has no room."""
        until, full = self._rooms.get(owner, (0.0, ""))
        if self.clock.monotonic() >= until:
            full = (await self.storage.quota(*owner)).full
            if len(self._rooms) >= _MAX_CACHED_OWNERS:
                self._rooms.clear()
            self._rooms[owner] = (self.clock.monotonic() + _ROOM_SECONDS, full)
        return full
