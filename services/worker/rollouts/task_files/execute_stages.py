"""Builds the stages that a task's Dockerfile copies from: the agent's sandbox has the copies, and no more."""

import asyncio
import io
from dataclasses import dataclass, replace

from proctor.values.rollout import BuiltStage, RolloutTask
from services.common.sandboxes.ports import Sandbox, SandboxEngine
from services.common.sandboxes.sandbox import Command, SandboxLimits, SandboxSpec, TarLimits
from services.worker.rollouts.task_files.set_up import SETUP_SECONDS, execute_steps
from services.worker.verification.bundles import below, inflated
from services.worker.verification.image_packages import ImagePackages

_MAX_PROCESSES = 128
# Copies lie here by their paths from the root, until they are taken.
_COPIED = "/copied"
# A source may be a pattern. The content of a folder is copied, a file is the target or goes into it.
_COPY = """IFS=
for source in $1; do
    if [ -d "$source" ]; then mkdir -p "$2" && cp -a "$source/." "$2/"
    else case "$2" in */) mkdir -p "$2" ;; *) mkdir -p "${2%/*}" ;; esac && cp -a "$source" "$2"
    fi || exit 1
done"""


@dataclass(frozen=True, slots=True)
class ExecuteStages:
    """`limits` are for what is copied of each stage."""

    engine: SandboxEngine
    limits: TarLimits

    async def execute(self, task: RolloutTask, packages: ImagePackages) -> tuple[RolloutTask, list[bytes]]:
        """The task with notes of what failed, and tar files by paths from the root. Raises SandboxError."""
        files = await asyncio.to_thread(inflated, task.stage_files) if task.stages else b""
        notes: list[str] = []
        copied = []
        for stage in task.stages:
            sandbox = await self.engine.open(_spec(task, stage, packages))
            try:
                if task.stage_files:
                    await sandbox.put("/", await asyncio.to_thread(below, files, stage.name))
                steps = [
                    replace(step, environment=packages.variables(step.environment)) for step in stage.setup
                ]
                notes += await execute_steps(sandbox, steps)
                notes += await _copy(sandbox, stage)
                with io.BytesIO() as taken:
                    await sandbox.get(_COPIED, taken, self.limits)
                    copied.append(taken.getvalue())
            finally:
                await asyncio.shield(sandbox.close())
        return replace(task, notes=(*task.notes, *notes)), copied


async def _copy(sandbox: Sandbox, stage: BuiltStage) -> list[str]:
    await sandbox.stop_processes()
    notes = []
    for path in stage.copies:
        command = Command(("sh", "-c", _COPY, "sh", path.source, f"{_COPIED}{path.target}"), cwd="/")
        if not (await sandbox.run(command)).is_success:
            notes.append(f"COPY {path.source} of the Dockerfile has no effect: its stage has not made it")
    return notes


def _spec(task: RolloutTask, stage: BuiltStage, packages: ImagePackages) -> SandboxSpec:
    limits = task.limits
    return SandboxSpec(
        workdir=stage.workdir,
        writable=(*stage.folders, _COPIED),
        limits=SandboxLimits(limits.cpus, limits.memory_bytes, limits.disk_bytes, _MAX_PROCESSES),
        lifetime_seconds=2 * SETUP_SECONDS,
        shown=packages.shown,
        plain=(*stage.folders, _COPIED),
    )
