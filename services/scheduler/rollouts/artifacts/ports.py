"""Port of artifacts: the record of what workers stored."""

from collections.abc import Sequence
from typing import Protocol

from proctor.values.run import RunId
from services.scheduler.rollouts.artifacts.artifact import Artifact, ArtifactPart


class ArtifactStore(Protocol):
    async def owner(self, run_id: RunId) -> tuple[str, int] | None:
        """The user and the project of a run; None where there is no run."""
        ...

    async def add(self, part: ArtifactPart, epoch: int, user: str, size_bytes: int) -> bool:
        """False where the run is gone, over or in another epoch, or the rollout has `MAX_EXECUTIONS` others.

        Called before the object is stored, so that it goes with its run. A new part is not listed yet.
        """
        ...

    async def set_stored(self, part: ArtifactPart, size_bytes: int) -> None:
        """The object is stored: the part is listed and can be read."""
        ...

    async def of_rollout(self, run_id: RunId, sample: int, rollout: int) -> Sequence[Artifact]: ...

    async def get(self, part: ArtifactPart) -> Artifact | None:
        """The artifact of a part."""
        ...

    async def delete_of_run(self, run_id: RunId) -> None:
        """Deletes the records of a deleted run; their objects are collected."""
        ...

    async def delete_without_run(self) -> None:
        """Deletes records whose run is gone; their objects are collected."""
        ...
