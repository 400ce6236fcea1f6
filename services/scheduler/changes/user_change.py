"""A change that a user made, and how changes are listed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Action(StrEnum):
    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    RETRY = "retry"
    DELETE = "delete"
    SET = "set"
    CREATE = "create"
    ROTATE = "rotate"
    REVOKE = "revoke"


class ObjectKind(StrEnum):
    RUN = "run"
    DATASET = "dataset"
    FILE = "file"
    SUITE = "suite"
    LIMITS = "limits"
    KEY = "key"


@dataclass(frozen=True, slots=True)
class Author:
    """The user who makes a change, and the time."""

    user: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Change:
    """`object_id` is empty for the limits.

    `detail` has the name of what was deleted, the new limits, or the user and role of a key.
    """

    author: Author
    action: Action
    kind: ObjectKind
    object_id: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Latest first. `last` is the number of the last one; None on the last page."""

    changes: Sequence[Change]
    last: int | None
