"""CPU and memory of whole process trees, from /proc: a process, its children and its ended children."""

import os
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """CPU seconds since the processes began; private memory now, in MiB."""

    cpu_seconds: float
    anon_mib: float


def usage_of_tree(root: int) -> Usage:
    """Sums a process and all that descend from it.

    CPU that an ended child took is in its parent's figures once it was reaped, so the sum misses nothing but
    children that ended and wait to be reaped.
    """
    children = _children_by_parent()
    ticks, kib, waiting = 0, 0, [root]
    while waiting:
        pid = waiting.pop()
        waiting.extend(children.get(pid, ()))
        ticks += _ticks(pid)
        kib += _anon_kib(pid)
    return Usage(ticks / TICKS_PER_SECOND, kib / 1024)


def _children_by_parent() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            fields = _stat_fields(int(folder.name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(folder.name))
    return children


def _stat_fields(pid: int) -> list[str]:
    """Fields after the name: [0] state, [1] parent, [11…14] user and system ticks, own and children's."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _ticks(pid: int) -> int:
    return sum(int(field) for field in _stat_fields(pid)[11:15])


def _anon_kib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon:")), 0)
