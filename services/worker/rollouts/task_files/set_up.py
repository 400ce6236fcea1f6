"""Executes the setup of a task: the steps of its Dockerfile that need no image, before the agent begins."""

import asyncio
import gzip
import io
from collections.abc import Sequence
from dataclasses import replace

from proctor.values.rollout import RolloutTask, SetupStep
from services.common.sandboxes.errors import FilesRefused
from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import Command, CommandResult, RootParts, TarLimits
from services.worker.rollouts.task_files.root_files import taken_root
from services.worker.verification.bundles import at_their_folders

# Folders that a sandbox is given for a task are there before its first step.
_FOLDERS_ARE_THERE = 'mkdir() { command mkdir -p "$@"; }\n'
_SHELLS = ("sh", "bash", "ash")
# What a note of a step begins with.
FAILED = "of RUN this failed: "
# The time of all steps together.
SETUP_SECONDS = 600.0


async def set_up(sandbox: Sandbox, task: RolloutTask, limits: TarLimits, root: RootParts) -> RolloutTask:
    """The task with its files as the steps have left them. A step that fails is a note: an image is missing.

    `limits` are for each folder of it, and for what else is in the `root`. Raises SandboxError.
    """
    notes = await execute_steps(sandbox, task.setup)
    # Nothing goes on while the files are taken.
    await sandbox.stop_processes()
    workspace = await _taken(sandbox, task.workdir, limits)
    await make_removed(sandbox, task.folders)
    others = {folder: await _taken(sandbox, folder, limits) for folder in task.folders}
    try:
        if taken := await taken_root(sandbox, limits, root):
            others["/"] = taken
    except FilesRefused as refused:
        notes.append(f"what RUN made in other folders does not reach the tests: {refused}")
    return replace(
        task,
        workspace=await asyncio.to_thread(gzip.compress, workspace, 1),
        others=await asyncio.to_thread(_packed, others),
        setup=(),
        notes=(*task.notes, *notes),
    )


async def make_removed(sandbox: Sandbox, folders: Sequence[str]) -> None:
    """Folders of the task that were removed are empty ones for what comes next."""
    if folders:
        await sandbox.run(Command(("mkdir", "-p", "--", *folders), cwd="/"))


async def execute_steps(sandbox: Sandbox, steps: Sequence[SetupStep]) -> list[str]:
    """Notes of those that failed."""
    notes = []
    for step in steps:
        command = Command(
            _argv(step.command),
            cwd=step.cwd,
            env=step.environment,
            timeout_seconds=SETUP_SECONDS / len(steps),
        )
        result = await sandbox.run(command)
        if not result.is_success:
            notes.append(f"{FAILED}{_short(step.command[-1])} ({_reason(result)})")
    return notes


def _argv(command: tuple[str, ...]) -> tuple[str, ...]:
    *program, script = command
    is_script = program and program[0].rsplit("/", 1)[-1] in _SHELLS
    return (*program, f"{_FOLDERS_ARE_THERE}{script}") if is_script else command


async def _taken(sandbox: Sandbox, folder: str, limits: TarLimits) -> bytes:
    with io.BytesIO() as taken:
        await sandbox.get(folder, taken, limits)
        return taken.getvalue()


def _packed(tars: dict[str, bytes]) -> bytes:
    return gzip.compress(at_their_folders(tars), 1) if tars else b""


def _reason(result: CommandResult) -> str:
    lines = result.text.strip().splitlines()
    return _short(lines[-1]) if lines else result.ended.value


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else f"{line[:117]}..."
