"""Artifacts of rollouts in Postgres."""

from collections.abc import Sequence
from dataclasses import asdict

from proctor.values.run import RunId
from services.common.clock import Clock
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.rollouts.artifacts.artifact import MAX_EXECUTIONS, Artifact, ArtifactPart
from services.scheduler.runs.lifecycle.run import artifacts_prefix
from services.scheduler.uploads.quotas.postgres import StorageQueries

# By which they count towards the storage of a user and of a project.
STORAGE_QUERIES = StorageQueries(["sum_artifact_storage"], ["sum_project_artifacts"])
_MAX_LISTED = 200


class PostgresArtifacts:
    def __init__(self, session: PostgresSession, clock: Clock) -> None:
        self._session = session
        self._clock = clock

    async def owner(self, run_id: RunId) -> tuple[str, int] | None:
        """The user and the project of a run; None where there is no run."""
        row = await self._session.fetchrow("read_run_owner", run_id=run_id)
        return (row["username"], row["project_id"]) if row else None

    async def add(self, part: ArtifactPart, epoch: int, user: str, size_bytes: int) -> bool:
        """False where the run is gone, over or in another epoch, or the rollout has `MAX_EXECUTIONS` others.

        Called before the object is stored, so that it goes with its run. A new part is not listed yet.
        """
        added = await self._session.fetchval(
            "add_artifact_part",
            **asdict(part),
            username=user,
            size_bytes=size_bytes,
            stored_at=self._clock.now(),
            epoch=epoch,
            max_executions=MAX_EXECUTIONS,
        )
        return bool(added)

    async def set_stored(self, part: ArtifactPart, size_bytes: int) -> None:
        """The object is stored: the part is listed and can be read."""
        await self._session.execute("mark_artifact_part", **asdict(part), size_bytes=size_bytes)

    async def of_rollout(self, run_id: RunId, sample: int, rollout: int) -> Sequence[Artifact]:
        rows = await self._session.fetch(
            "list_artifacts", run_id=run_id, sample=sample, rollout=rollout, limit=_MAX_LISTED
        )
        return [Artifact(**row) for row in rows]

    async def get(self, part: ArtifactPart) -> Artifact | None:
        """The artifact of a part."""
        row = await self._session.fetchrow(
            "find_artifact",
            run_id=part.run_id,
            sample=part.sample,
            rollout=part.rollout,
            execution=part.execution,
            name=part.name,
        )
        return None if row is None else Artifact(**row)

    async def delete_of_run(self, run_id: RunId) -> None:
        """Deletes the records of a deleted run; their objects are collected."""

        async def delete(transaction: PostgresTransaction) -> None:
            if await transaction.fetchval("delete_artifacts", run_id=run_id):
                await transaction.execute("add_unreferenced_prefix", prefix=artifacts_prefix(run_id))

        await self._session.run(delete)

    async def is_backup_running(self) -> bool:
        """Whether the objects of deleted rows have to stay."""
        return bool(await self._session.fetchval("is_backup_running"))

    async def delete_without_run(self) -> None:
        """Deletes records whose run is gone; their objects are collected."""

        async def delete(transaction: PostgresTransaction) -> None:
            rows = await transaction.fetch("delete_artifacts_without_run")
            prefixes = {artifacts_prefix(RunId(str(row["run_id"]))) for row in rows}
            await transaction.executemany(
                "add_unreferenced_prefix", [{"prefix": prefix} for prefix in sorted(prefixes)]
            )

        await self._session.run(delete)
