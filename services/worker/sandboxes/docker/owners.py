"""Whose containers are left behind: a label says which worker made one, and no machine's clock decides.

A container that runs ends with its worker, by itself. What may be left was never started, or was not removed.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from services.worker.sandboxes.container import owners

LABEL = "proctor.sandbox"
_OWNER = "proctor.sandbox.owner"
_MADE_NOT_STARTED = frozenset({"created", "configured", "initialized"})
_ENDED = frozenset({"exited", "dead"})
# A worker starts what it has made at once.
_STARTING_SECONDS = 120.0


class ListedContainer(Protocol):
    """A container as the engine lists it."""

    def __getitem__(self, key: str, /) -> Any: ...


def labels(own_labels: Mapping[str, str]) -> dict[str, str]:
    return {**own_labels, LABEL: "1", _OWNER: owners.own()}


def is_left(listed: ListedContainer, engine_time: float) -> bool:
    """`engine_time`: what the engine's clock shows, in seconds. A worker elsewhere may be about to start what
    it has made.
    """
    has_ended = owners.has_ended((listed["Labels"] or {}).get(_OWNER, ""))
    if has_ended is not None:
        return has_ended
    made_at: float = listed["Created"]
    state: str = listed["State"]
    return state in _ENDED | _MADE_NOT_STARTED and engine_time - made_at > _STARTING_SECONDS


def time_of(info: Mapping[str, Any]) -> float:
    """The engine's clock, which also says when a container was made; 0 where the engine does not show it."""
    try:
        return datetime.fromisoformat(info.get("SystemTime", "")).timestamp()
    except ValueError:
        return 0.0
