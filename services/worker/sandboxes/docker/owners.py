"""Whose containers are left behind: labels say which worker made one, and until when it may be there."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

LABEL = "proctor.sandbox"
_OWNER, _DEADLINE = "proctor.sandbox.owner", "proctor.sandbox.deadline"
_SLACK_SECONDS = 120.0


def labels(lifetime_seconds: float, own: Mapping[str, str]) -> dict[str, str]:
    deadline = str(int(time.time() + lifetime_seconds + _SLACK_SECONDS))
    return {
        **own,
        LABEL: "1",
        _OWNER: f"{_machine()}/{os.getpid()}/{_start(os.getpid())}",
        _DEADLINE: deadline,
    }


def is_left(found: Mapping[str, str]) -> bool:
    """Its worker was on this machine and is gone, or its time is over."""
    machine, _, process = found.get(_OWNER, "").partition("/")
    number, _, start = process.partition("/")
    if machine == _machine() and number.isdigit():
        return _start(int(number)) != start
    deadline = found.get(_DEADLINE, "")
    return deadline.isdigit() and time.time() > int(deadline)


def _machine() -> str:
    """One start of one machine, as processes see it: containers have numbers of processes of their own."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot}-{Path('/proc/self/ns/pid').stat().st_ino}"


def _start(process: int) -> str:
    """When it started, which no later process of the same number did; empty where there is none."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
