"""Backs up a local stack, running or not, and restores a backup into an empty one.

The work is done by the program that the chart starts as well, in a process of its own (decision 0067).
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

from proctor.stack.errors import BackupFailed
from proctor.stack.local_stack import LocalStack, running_stack
from proctor.stack.options import StackOptions
from proctor.stack.servers.services import object_store_of
from proctor.stack.state import read_stack_state

_PROGRAM = "services.backup.program"


@dataclass(frozen=True, slots=True)
class Backup:
    """What was saved or restored. `place` is a folder, `taken_at` a time as ISO 8601."""

    place: str
    taken_at: str
    release: str
    rows: int
    objects: int
    object_bytes: int


async def back_up(options: StackOptions, folder: Path) -> Backup:
    """Stores a backup in a new folder of `folder`. Postgres is started for it where no stack runs.

    Raises `BackupFailed`.
    """
    to = folder.resolve().as_uri()
    stack = read_stack_state(options.state_dir)
    if stack is not None:
        store = stack.environment.get("PROCTOR_SCHEDULER_OBJECT_STORE", object_store_of(options))
        return await _run(options, _environment(stack.postgres_dsn, stack.postgres_dsn, store), "save", to)
    if not (options.state_dir / "stack.lock").exists():
        raise BackupFailed(problem=f"There is no stack in {options.state_dir}: nothing was backed up.")
    async with running_stack(_stores(options), report=lambda _: None) as servers:
        return await _run(options, _environment_of(servers), "save", to)


async def restore(options: StackOptions, backup: Path) -> Backup:
    """Restores the backup in the folder `backup`, which `back_up` has made.

    Raises `BackupFailed`, and `StackAlreadyRunning`.
    """
    async with running_stack(_stores(options), report=lambda _: None) as servers:
        return await _run(options, _environment_of(servers), "restore", backup.resolve().as_uri())


def _stores(options: StackOptions) -> StackOptions:
    """Postgres and NATS alone."""
    return replace(options, modules={}, pools=(), aliases={})


def _environment_of(stack: LocalStack) -> dict[str, str]:
    assert stack.postgres is not None
    scheduler, results = (stack.postgres.dsn_of(service) for service in ("scheduler", "results"))
    return _environment(scheduler, results, object_store_of(stack.options))


def _environment(scheduler: str, results: str, store: str) -> dict[str, str]:
    """The roles own what they restore."""
    return {
        "PROCTOR_BACKUP_SCHEDULER_DSN": scheduler,
        "PROCTOR_BACKUP_RESULTS_DSN": results,
        "PROCTOR_BACKUP_OBJECT_STORE": store,
    }


async def _run(options: StackOptions, environment: Mapping[str, str], *arguments: str) -> Backup:
    process = await asyncio.create_subprocess_exec(
        str(options.python),
        *("-P", "-m", _PROGRAM, *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**options.environment, **environment},
    )
    try:
        output, errors = await process.communicate()
    except asyncio.CancelledError:
        # It deletes what it has stored.
        with suppress(ProcessLookupError):
            process.terminate()
        await process.communicate()
        raise
    finally:
        if process.returncode is None:
            process.kill()
    lines = output.decode(errors="replace").strip().splitlines()
    try:
        report = json.loads(lines[-1])
    except (IndexError, ValueError):
        report = {}
    if process.returncode != 0:
        problem = report.get("message") or errors.decode(errors="replace").strip() or "The program ended."
        for address in (arguments[-1], environment["PROCTOR_BACKUP_OBJECT_STORE"]):
            problem = problem.replace(address, _folder_of(address))
        raise BackupFailed(problem=problem)
    facts = {name: report[name] for name in ("taken_at", "release", "rows", "objects", "object_bytes")}
    return Backup(place=_folder_of(report["place"]), **facts)


def _folder_of(address: str) -> str:
    """The address of a bucket stays as it is."""
    is_folder = address.startswith("file://")
    return unquote(address.removeprefix("file://")) if is_folder else address
