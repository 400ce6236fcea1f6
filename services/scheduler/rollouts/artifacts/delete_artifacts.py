"""Deletes the artifacts of runs that are deleted."""

from dataclasses import dataclass
from typing import NoReturn

from proctor.values.run import RunId
from services.common.lifecycle import every
from services.scheduler.rollouts.artifacts.postgres import PostgresArtifacts
from services.scheduler.runs.lifecycle.run import artifacts_prefix
from services.scheduler.uploads.delete_uploads import delete_unreferenced
from services.scheduler.uploads.ports import ObjectStore

_SWEEP_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class DeleteArtifacts:
    """Objects that cannot be deleted now are collected later: their prefix is unreferenced."""

    artifacts: PostgresArtifacts
    objects: ObjectStore

    async def delete(self, run_id: RunId) -> None:
        """Called once the run is deleted: nothing is stored of it afterwards."""
        await self.artifacts.delete_of_run(run_id)
        await delete_unreferenced(self.objects, artifacts_prefix(run_id), self.artifacts)


@dataclass(frozen=True, slots=True)
class DeleteArtifactsWithoutRun:
    """A scheduler that ended after it had deleted a run leaves what is recorded of its artifacts."""

    artifacts: PostgresArtifacts

    async def lead(self) -> NoReturn:
        await every(_SWEEP_SECONDS, self.artifacts.delete_without_run, name="delete artifacts without run")
