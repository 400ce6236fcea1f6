"""Shows what workers stored of a rollout."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.run import RunId
from services.common.errors import DomainError, ErrorKind
from services.scheduler.rollouts.artifacts.artifact import Artifact, ArtifactPart
from services.scheduler.rollouts.artifacts.postgres import PostgresArtifacts
from services.scheduler.uploads.ports import ObjectStore


class ArtifactNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="ARTIFACT_NOT_FOUND"):
    """The run {run_id} has no artifact {name} of this rollout. List those that it has."""


@dataclass(frozen=True, slots=True)
class ShowArtifacts:
    artifacts: PostgresArtifacts
    objects: ObjectStore

    async def list_of_rollout(self, run_id: RunId, sample: int, rollout: int) -> Sequence[Artifact]:
        return await self.artifacts.of_rollout(run_id, sample, rollout)

    async def show_part(self, part: ArtifactPart) -> tuple[Artifact, bytes]:
        """The artifact and the bytes of its part. Raises `ArtifactNotFound`."""
        await self._artifact(part)
        content = await asyncio.to_thread(self.objects.get, part.key)
        # Read after the object: a part that is stored anew is recorded before its object is.
        return await self._artifact(part), content

    async def _artifact(self, part: ArtifactPart) -> Artifact:
        artifact = await self.artifacts.get(part) if part.has_a_name else None
        if artifact is None or not 0 <= part.part < artifact.parts:
            raise ArtifactNotFound(run_id=part.run_id, name=part.name[:40])
        return artifact
