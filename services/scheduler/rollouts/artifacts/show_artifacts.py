"""Shows what workers stored of a rollout."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.run import RunId
from services.scheduler.rollouts.artifacts.artifact import Artifact, ArtifactNotFound, ArtifactPart
from services.scheduler.rollouts.artifacts.ports import ArtifactStore
from services.scheduler.uploads.ports import ObjectStore


@dataclass(frozen=True, slots=True)
class ShowArtifacts:
    artifacts: ArtifactStore
    objects: ObjectStore

    async def of_rollout(self, run_id: RunId, sample: int, rollout: int) -> Sequence[Artifact]:
        return await self.artifacts.of_rollout(run_id, sample, rollout)

    async def part(self, part: ArtifactPart) -> bytes:
        """Raises `ArtifactNotFound`."""
        if not await self.artifacts.has(part):
            raise ArtifactNotFound(run_id=part.run_id, name=part.name[:40])
        return await asyncio.to_thread(self.objects.get, part.key)
