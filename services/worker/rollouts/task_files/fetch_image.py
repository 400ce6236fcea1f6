"""Gives a task the files of its image: folders that a sandbox makes writable would hide them."""

import asyncio
import gzip
import io
from dataclasses import dataclass, replace

from proctor.values.rollout import ImageBuild, RolloutTask
from services.common.sandboxes.errors import FilesOverLimit, ImageNotBuilt
from services.common.sandboxes.ports import ImageBuilder, Sandbox, SandboxEngine
from services.common.sandboxes.sandbox import Command, SandboxSpec, TarLimits
from services.worker.verification.bundles import at_their_folders

# No image has it, so it hides nothing.
_ASIDE = "/proctor-aside"
_LOOK = '[ -d "$1" ] || exit 3; [ -r "$1" ] && [ -x "$1" ] || exit 4'
_ABSENT, _CLOSED = 3, 4


@dataclass(frozen=True, slots=True)
class FetchImage:
    """`builder` is None where images are not built. `limits` are for each folder of an image."""

    engine: SandboxEngine
    builder: ImageBuilder | None
    limits: TarLimits

    async def fetch(self, task: RolloutTask) -> RolloutTask:
        """The task with its image, and with the image's files unless it has files of its own.

        Raises SandboxError.
        """
        if self.builder and task.context and not task.image:
            image = await self.builder.build(task.context, task.build)
            notes = tuple(note for note in task.notes if note not in task.build.notes)
            read = replace(task, workspace=b"", others=b"", setup=(), packages=(), stages=(), stage_files=b"")
            task = replace(read, image=image, notes=notes, build=ImageBuild())
        if not task.image or task.workspace:
            return task
        sandbox = await self.engine.open(
            SandboxSpec(
                workdir=_ASIDE,
                image=task.image,
                lifetime_seconds=task.limits.agent_seconds,
                shows_image=True,
            )
        )
        try:
            workspace = await self._taken(sandbox, task, task.workdir)
            others = {folder: await self._taken(sandbox, task, folder) for folder in task.folders}
        finally:
            await asyncio.shield(sandbox.close())
        return replace(
            task,
            workspace=await asyncio.to_thread(gzip.compress, workspace, 1) if workspace else b"",
            others=await asyncio.to_thread(_packed, others),
        )

    async def _taken(self, sandbox: Sandbox, task: RolloutTask, folder: str) -> bytes:
        """A tar; empty where the image has no such folder."""
        looked = await sandbox.run(Command(("sh", "-c", _LOOK, "sh", folder), cwd="/"))
        if looked.exit_code == _ABSENT:
            return b""
        if looked.exit_code == _CLOSED:
            problem = f"the folder {folder} of {task.image} is closed to ordinary users."
            raise ImageNotBuilt(problem=problem)
        with io.BytesIO() as taken:
            try:
                await sandbox.get(folder, taken, self.limits)
            except FilesOverLimit as over:
                raise ImageNotBuilt(
                    problem=f"{over} PROCTOR_WORKER_ROLLOUT_MAX_BYTES and PROCTOR_WORKER_ROLLOUT_MAX_FILES "
                    "bound its working folder."
                ) from over
            return taken.getvalue()


def _packed(tars: dict[str, bytes]) -> bytes:
    there = {folder: tar for folder, tar in tars.items() if tar}
    return gzip.compress(at_their_folders(there), 1) if there else b""
