"""The worker that made a container, as a label says it: by its process, since no machine's clock decides."""

import os
from pathlib import Path


def own() -> str:
    """Letters that labels and tags of every engine take."""
    return f"{_machine()}.{os.getpid()}.{_start(os.getpid())}"


def has_ended(owner: str) -> bool | None:
    """None for a worker elsewhere, such as in a container of its own: its processes cannot be looked at."""
    machine, _, process = owner.partition(".")
    number, _, start = process.partition(".")
    if machine != _machine() or not number.isdigit():
        return None
    return _start(int(number)) != start


def _machine() -> str:
    """One start of one machine, as processes see it: containers have numbers of processes of their own."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot.replace('-', '')}-{Path('/proc/self/ns/pid').stat().st_ino}"


def _start(process: int) -> str:
    """When it started, which no later process of the same number did; empty where there is none."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
