"""`proctor rollouts artifacts`: fetches the folders of an order, with whole artifacts."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.gateway import Session
from proctor.cli.render.terminal import say
from proctor.cli.rollouts.folders import STAMP_FORM, OrderedRun, RolloutFolders, resumed_folders
from proctor.cli.rollouts.outcomes import recorded_outcomes
from proctor.client.errors import ClientError
from proctor.exit_codes import ExitCode
from proctor.v1 import artifact_service_pb2 as artifact_pb2
from proctor.v1 import artifact_service_pb2_grpc as artifact_grpc
from proctor.v1 import outcome_pb2, rollout_service_pb2
from proctor.values.rollout import DIFF, FILES, LOG, PART_BYTES, TRAJECTORY
from proctor.wire.rollout_orders import row_rollouts

# Rollouts that are fetched at a time.
_PARALLEL = 4
# An artifact that is stored anew while it is read is read again.
_TRIES = 3
# Where an artifact lies in the folder of its rollout. Nothing else is written, whatever a server lists.
_TARGETS = {
    TRAJECTORY: "artifacts/trajectory.json",
    FILES: "artifacts/files.tar.gz",
    DIFF: "artifacts/diff.patch",
    LOG: "logs/eval.log",
}

OrderArgument = Annotated[str, typer.Argument(metavar="ORDER", help="Id of an order of rollouts.")]
FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of results.")]


class _ArtifactChanges(ClientError):
    """An artifact is stored anew each time that it is read."""


async def fetch_artifacts(
    session: Session, order: OrderArgument, folder: FolderArgument = Path("data")
) -> ExitCode:
    """Fetch the folders of an order, with whole artifacts. What an earlier call fetched stays as it is."""
    client, terminal = session.client, session.terminal
    request = rollout_service_pb2.GetRolloutsOrderRequest(order_id=order)
    found = (await client.rollouts.GetRolloutsOrder(request)).order
    folders = resumed_folders(_folders_of(found, folder))
    slots = asyncio.Semaphore(_PARALLEL)

    async def fetch(run: OrderedRun, outcome: outcome_pb2.RecordedOutcome) -> None:
        try:
            written = folders.write(run, outcome)
            await _Fetch(client.artifacts, run.run_id, outcome.outcome, written).all()
            folders.record(run, outcome)
            spinner.update(_line(folders))
        finally:
            slots.release()

    with terminal.progress.status(_line(folders)) as spinner:
        try:
            async with asyncio.TaskGroup() as group:
                for run in folders.runs:
                    async for outcome in recorded_outcomes(client, run.run_id):
                        if not folders.is_there(run, outcome):
                            # Records are large: no more of them are held than are fetched.
                            await slots.acquire()
                            group.create_task(fetch(run, outcome), name="fetch a rollout")
        except ExceptionGroup as failures:
            # Mostly all fail for one reason.
            raise failures.exceptions[0] from None
    folders.save()
    if len(folders.results) < folders.total:
        there = f"{len(folders.results)} of {folders.total} rollouts are there."
        say(terminal.progress, f"{there} Call it again for those that are still to come.")
    terminal.report({"folder": str(folders.folder)}, f"Results: {folders.folder}")
    return ExitCode.OK


def _line(folders: RolloutFolders) -> str:
    return f"Fetching rollouts... {len(folders.results)}/{folders.total} completed"


def _folders_of(order: rollout_service_pb2.RolloutsOrder, root: Path) -> RolloutFolders:
    """The folders that a `proctor rollouts run` of this order alone would have written."""
    stamp = order.created_at.ToDatetime().strftime(STAMP_FORM)
    config = {"order_id": order.order_id, "suite": order.suite, "suite_version": order.suite_version}
    folders = RolloutFolders(root, order.suite, stamp, config)
    tasks = list(order.task_ids)
    for run in order.runs:
        rollouts = row_rollouts(run.order, len(tasks))
        known = OrderedRun(run.run_id, run.order.model, rollouts, folders.total, tasks, tasks)
        folders.runs.append(known)
    return folders


@dataclass(frozen=True, slots=True)
class _Fetch:
    """The artifacts of one rollout, into its folder."""

    artifacts: "artifact_grpc.ArtifactServiceAsyncStub"
    run_id: str
    outcome: outcome_pb2.Outcome
    folder: Path

    async def all(self) -> None:
        """Artifacts of the execution that counts: that of the record, of a failure the latest."""
        listed = [each for each in await self._listed() if each.name in _TARGETS]
        latest = max(listed, key=lambda each: each.stored_at.ToNanoseconds(), default=None)
        body = self.outcome.answer.body_json
        counts = json.loads(body).get("execution") if body else latest and latest.execution
        for artifact in listed:
            if artifact.execution == counts:
                await self._whole(artifact)

    async def _whole(self, artifact: artifact_pb2.Artifact) -> None:
        """Goes on with what an earlier call left, and puts the whole file at its path by rename."""
        target = self.folder / _TARGETS[artifact.name]
        moment = artifact.stored_at.ToNanoseconds()
        partial = target.with_name(f".{target.name}.{artifact.execution}-{moment}")
        for _ in range(_TRIES):
            if await self._parts(artifact, partial):
                partial.replace(target)
                return
            partial.unlink()
            again = await self._listed_again(artifact)
            if again is None:
                break
            artifact = again
        raise _ArtifactChanges(f"{artifact.name} of {self.folder} changes while it is read. Call it again.")

    async def _parts(self, artifact: artifact_pb2.Artifact, partial: Path) -> bool:
        """Appends the parts that are missing; False where the artifact was stored anew meanwhile."""
        partial.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("ab") as file:
            # A part that was cut off is read again.
            file.truncate(file.tell() // PART_BYTES * PART_BYTES)
            for part in range(file.tell() // PART_BYTES, artifact.parts):
                read = await self.artifacts.ReadArtifact(self._request(artifact, part))
                if read.artifact.stored_at != artifact.stored_at:
                    return False
                file.write(read.content)
            return file.tell() == artifact.size_bytes

    async def _listed_again(self, artifact: artifact_pb2.Artifact) -> artifact_pb2.Artifact | None:
        """None where it was deleted meanwhile, by a retry or with its run."""
        key = artifact.execution, artifact.name
        return next((each for each in await self._listed() if (each.execution, each.name) == key), None)

    async def _listed(self) -> Sequence[artifact_pb2.Artifact]:
        request = artifact_pb2.ListArtifactsRequest(
            run_id=self.run_id, sample=self.outcome.sample, rollout=self.outcome.rollout
        )
        return (await self.artifacts.ListArtifacts(request)).artifacts

    def _request(self, artifact: artifact_pb2.Artifact, part: int) -> artifact_pb2.ReadArtifactRequest:
        return artifact_pb2.ReadArtifactRequest(
            run_id=self.run_id,
            sample=self.outcome.sample,
            rollout=self.outcome.rollout,
            execution=artifact.execution,
            name=artifact.name,
            part=part,
        )
