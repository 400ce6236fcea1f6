"""Whose containers are left behind: a label says which worker made one, and no machine's clock decides.

A container that runs ends with its worker, by itself. What may be left was never started, or was not removed.
"""

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

LABEL = "proctor.sandbox"
_OWNER = "proctor.sandbox.owner"
_MADE_NOT_STARTED = frozenset({"created", "configured", "initialized"})
_ENDED = frozenset({"exited", "dead"})
# A worker starts what it has made at once.
_STARTING_SECONDS = 120.0


class Listed(Protocol):
    """A container as the engine lists it."""

    def __getitem__(self, key: str, /) -> Any: ...


def labels(own: Mapping[str, str]) -> dict[str, str]:
    return {**own, LABEL: "1", _OWNER: f"{_machine()}/{os.getpid()}/{_start(os.getpid())}"}


def is_left(listed: Listed, engine_time: float) -> bool:
    """`engine_time`: what the engine's clock shows, in seconds.

    The processes of a worker on this machine can be looked at. A worker elsewhere, such as in a container of
    its own, may be about to start what it has made.
    """
    owner: str = (listed["Labels"] or {}).get(_OWNER, "")
    machine, _, process = owner.partition("/")
    number, _, start = process.partition("/")
    if machine == _machine() and number.isdigit():
        return _start(int(number)) != start
    made_at: float = listed["Created"]
    state: str = listed["State"]
    return state in _ENDED | _MADE_NOT_STARTED and engine_time - made_at > _STARTING_SECONDS


def time_of(info: Mapping[str, Any]) -> float:
    """The engine's clock, which also says when a container was made; 0 where the engine does not show it."""
    try:
        return datetime.fromisoformat(info.get("SystemTime", "")).timestamp()
    except ValueError:
        return 0.0


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
