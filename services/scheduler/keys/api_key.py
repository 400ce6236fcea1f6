"""A stored API key, and what a gateway has to know of keys and sessions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from proctor.values.names.user import Role
from services.scheduler.projects.project import KnownMember, KnownProject


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    key_id: str
    user: str
    role: Role
    note: str
    created_by: str
    created_at: datetime
    expires_at: datetime
    # 0: it reaches all projects of its user.
    project_id: int = 0
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_taken(self, now: datetime) -> bool:
        return self.revoked_at is None and now < self.expires_at


@dataclass(frozen=True, slots=True)
class KeyPage:
    """Latest first. `last` is the number of the last one; None on the last page."""

    keys: Sequence[ApiKey]
    last: int | None


@dataclass(frozen=True, slots=True)
class Replaced:
    """The key that a new one replaces, and until when it is still taken."""

    key_id: str
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class KnownKey:
    """`ends_in` is zero for a key that was revoked or is over. `project_id` is 0 for one of all projects."""

    key_id: str
    user: str
    role: Role
    code: bytes
    ends_in: timedelta
    project_id: int


@dataclass(frozen=True, slots=True)
class EndedSession:
    session_id: str
    ends_in: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessChanges:
    """Changes behind a version, up to `version`."""

    version: int
    keys: Sequence[KnownKey] = ()
    sessions: Sequence[EndedSession] = ()
    members: Sequence[KnownMember] = ()
    projects: Sequence[KnownProject] = ()
    has_more: bool = False
    is_unknown_version: bool = False
