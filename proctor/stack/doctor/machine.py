"""Room on the disk and in memory, and the folder of the stack's data."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from proctor.stack.doctor.finding import Finding, fine, missing, warning
from proctor.stack.options import default_cache_dir, default_state_dir

_GIB = 1024**3
_MEMORY_FILE = Path("/proc/meminfo")
# Postgres, NATS and four services take about half of it; vLLM with a tiny model the rest.
ENOUGH_MEMORY_GIB = 2.0
# A run of twenty thousand samples takes tens of MB; below the least Postgres itself stops.
ENOUGH_DISK_GIB, LEAST_DISK_GIB = 5.0, 0.5


def examine_memory(memory_file: Path = _MEMORY_FILE) -> Finding:
    free = _free_memory_gib(memory_file)
    if free is None:
        return fine("memory", "this system does not tell how much is free")
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
    says = f"{free:.1f} GiB free for {folder}"
    advice = "make room, or set PROCTOR_STATE_DIR and PROCTOR_CACHE_DIR to folders on a larger disk"
    if free < LEAST_DISK_GIB:
        return missing("disk", says, advice)
    return warning("disk", says, advice) if free < ENOUGH_DISK_GIB else fine("disk", says)


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
