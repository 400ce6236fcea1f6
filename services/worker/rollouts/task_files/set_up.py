"""Executes the setup of a task: the steps of its Dockerfile that need no image, before the agent begins."""

import asyncio
import gzip
import io
from collections.abc import Sequence
from dataclasses import replace

from proctor.values.rollout import RolloutTask, SetupStep
from services.common.sandboxes.errors import FilesRefused
from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import Command, CommandResult, TarLimits
from services.worker.verification.bundles import at_their_folders

# Folders that a sandbox is given for a task are there before its first step.
_FOLDERS_ARE_THERE = 'mkdir() { command mkdir -p "$@"; }\n'
_MARK = "/logs/.setup"
# Folders of files whose status changed since the mark, of this file system alone.
_FIND = 'find / -xdev -type f -cnewer "$1" -printf "%h\n" 2>/dev/null | sort -u; rm -f -- "$1"'
_FOUND_BYTES = 200_000
# What a machine has for several: a folder in one of them is the task's.
_PARENTS = frozenset({"home", "mnt", "opt", "root", "srv", "var"})
_MOST_FOLDERS = 16
_SHELLS = ("sh", "bash", "ash")
# The time of all steps together.
SETUP_SECONDS = 600.0


async def set_up(sandbox: Sandbox, task: RolloutTask, limits: TarLimits) -> RolloutTask:
    """The task with its files as the steps have left them. A step that fails is a note: an image is missing.

    `limits` are for each folder of it. Raises SandboxError.
    """
    marked = await sandbox.run(Command(("touch", _MARK), cwd="/")) if task.setup else None
    notes = await execute_steps(sandbox, task.setup)
    # Nothing goes on while the files are taken.
    await sandbox.stop_processes()
    made = await _made(sandbox, task) if marked is not None and marked.is_success else []
    workspace = await _taken(sandbox, task.workdir, limits)
    await make_removed(sandbox, task.folders)
    others = {folder: await _taken(sandbox, folder, limits) for folder in task.folders}
    for folder in made:
        try:
            others[folder] = await _taken(sandbox, folder, limits)
        except FilesRefused as refused:
            notes.append(f"{folder}, which RUN made, does not reach the tests: {refused}")
    return replace(
        task,
        folders=tuple(others),
        workspace=await asyncio.to_thread(gzip.compress, workspace, 1),
        others=await asyncio.to_thread(_packed, others),
        setup=(),
        notes=(*task.notes, *notes),
    )


async def _made(sandbox: Sandbox, task: RolloutTask) -> list[str]:
    """Other folders that the steps wrote files to: no line of a Dockerfile names those of its programs."""
    found = await sandbox.run(Command(("sh", "-c", _FIND, "sh", _MARK), cwd="/", output_bytes=_FOUND_BYTES))
    known = ("/logs", "/tmp", task.workdir, *task.folders)  # noqa: S108  # inside
    folders = dict.fromkeys(
        "/".join(line.split("/")[: 3 if line.split("/")[1] in _PARENTS else 2])
        for line in found.text.splitlines()
        if line.startswith("/") and not any(f"{line}/".startswith(f"{place}/") for place in known)
    )
    return list(folders)[:_MOST_FOLDERS]


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
            notes.append(f"of RUN this failed: {_short(step.command[-1])} ({_reason(result)})")
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
