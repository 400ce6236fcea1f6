"""Deletes the artifacts of a run that is deleted."""

import asyncio
from dataclasses import dataclass

from proctor.values.run import RunId
from services.scheduler.runs.lifecycle.run import artifacts_prefix
from services.scheduler.uploads.delete_uploads import try_to_delete_objects
from services.scheduler.uploads.ports import ObjectStore


@dataclass(frozen=True, slots=True)
class DeleteArtifacts:
    """What cannot be deleted now is collected later: the prefix of a deleted run is unreferenced."""

    objects: ObjectStore

    async def delete(self, run_id: RunId) -> None:
        await asyncio.to_thread(try_to_delete_objects, self.objects, artifacts_prefix(run_id))
