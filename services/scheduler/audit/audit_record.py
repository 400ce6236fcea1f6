"""A record of the audit: who did what, when and from where; and how records and changes are listed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from proctor.values.contract_enum import ContractEnum


class Action(StrEnum):
    """Actions of the scheduler. Those of the gateway are the verbs of other methods."""

    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    RETRY = "retry"
    DELETE = "delete"
    SET = "set"
    CREATE = "create"
    ROTATE = "rotate"
    REVOKE = "revoke"
    SUBMIT = "submit"
    IMPORT = "import"
    UPLOAD = "upload"
    ADD = "add"
    SIGN_OUT = "sign out"
    LABEL = "label"
    ARCHIVE = "archive"
    RESTORE = "restore"
    REMOVE = "remove"
    SAVE = "save"
    # Of what was accepted before.
    REFUSE = "refuse"

    @property
    def is_listed(self) -> bool:
        """Whether every user sees it among the changes: what is new is in lists of its own."""
        return self not in (Action.SUBMIT, Action.IMPORT, Action.UPLOAD, Action.ADD, Action.SIGN_OUT)


class ObjectKind(StrEnum):
    RUN = "run"
    DATASET = "dataset"
    FILE = "file"
    SUITE = "suite"
    LIMITS = "limits"
    KEY = "key"
    BATCH = "batch"
    ROLLOUTS = "rollouts"
    TASKS = "tasks"
    SESSION = "session"
    PROJECT = "project"
    SCHEDULE = "schedule"
    NOTICE_TARGET = "notice target"
    MAPPING = "mapping"


class Outcome(ContractEnum):
    """`DONE` was written with the change, `ADMITTED` before the gateway let the call through."""

    DONE = "done", 1
    ADMITTED = "admitted", 2
    REFUSED = "refused", 3


@dataclass(frozen=True, slots=True)
class Author:
    """The user who makes a change, and the time."""

    user: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Change:
    """`object_id` is empty for the limits.

    `detail` has the name of what was deleted or uploaded, the new limits or labels, or the user and
    role of a key. Users who do not see `project_id` do not see the change.
    """

    author: Author
    action: Action
    kind: ObjectKind
    object_id: str
    detail: str = ""
    project_id: int = 0


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Latest first. `last` is the number of the last one; None on the last page."""

    changes: Sequence[Change]
    last: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """`key_id` is empty for a key in the settings of the gateway, `address` for what Proctor does by itself.

    `times` counts equal refusals of a short time, which share a record.
    """

    recorded_at: datetime
    user: str
    key_id: str
    address: str
    action: str
    kind: str
    object_id: str
    detail: str
    outcome: Outcome
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """None: all."""

    user: str | None = None
    action: str | None = None
    object_id: str | None = None
    outcome: Outcome | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Latest first. `last` is the number of the last one; None on the last page."""

    records: Sequence[AuditRecord]
    last: int | None
