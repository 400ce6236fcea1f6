"""The scheduler's services of keys, over a dict in the place of Postgres."""

from dataclasses import dataclass, field, replace
from datetime import datetime

from services.common.api_keys import Pepper
from services.common.clock import SystemClock
from services.scheduler.audit.audit_record import Author
from services.scheduler.keys.api_key import (
    AccessChanges,
    ApiKey,
    EndedSession,
    KeyPage,
    KnownKey,
    Replaced,
)
from services.scheduler.keys.grpc_api import GrpcKeyApi
from services.scheduler.keys.manage_keys import ManageKeys
from tests.fakes.callers import CALLER_KEY
from tests.fakes.scheduler.memory_audit import MemoryAudit


@dataclass
class MemoryKeys:
    """Keeps a version for each key and each ended session."""

    keys: dict[str, ApiKey] = field(default_factory=dict)
    codes: dict[str, bytes] = field(default_factory=dict)
    sessions: dict[str, datetime] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    members: set[tuple[int, str]] = field(default_factory=set)
    uses: list[str] = field(default_factory=list)
    asked: int = 0

    def _changed(self, name: str) -> None:
        self.versions[name] = max(self.versions.values(), default=0) + 1

    async def add(
        self,
        key: ApiKey,
        code: bytes,
        author: Author,  # noqa: ARG002  # the port's
        *,
        replaced: Replaced | None = None,
    ) -> None:
        self.keys[key.key_id], self.codes[key.key_id] = key, code
        self._changed(key.key_id)
        if replaced:
            old = self.keys[replaced.key_id]
            self.keys[old.key_id] = replace(old, expires_at=min(old.expires_at, replaced.ends_at))
            self._changed(old.key_id)

    async def find(self, key_id: str) -> ApiKey | None:
        return self.keys.get(key_id)

    async def is_member(self, project_id: int, user: str) -> bool:
        return (project_id, user) in self.members

    async def page(self, size: int, before: int | None, user: str) -> KeyPage:  # noqa: ARG002  # one page
        return KeyPage([key for key in reversed(self.keys.values()) if user in ("", key.user)], None)

    async def revoke(self, key_id: str, author: Author) -> None:
        self.keys[key_id] = replace(self.keys[key_id], revoked_at=author.at)
        self._changed(key_id)

    async def end_session(
        self,
        session_id: str,
        ends_at: datetime,
        author: Author,  # noqa: ARG002  # the port's
    ) -> None:
        self.sessions[session_id] = ends_at
        self._changed(session_id)

    async def changes_behind(self, version: int, now: datetime, limit: int) -> AccessChanges:  # noqa: ARG002  # all of them
        self.asked += 1
        changed = [name for name, of_name in self.versions.items() if of_name > version]
        return AccessChanges(
            version=max(self.versions.values(), default=0),
            keys=[self._known(self.keys[name], now) for name in changed if name in self.keys],
            sessions=[
                EndedSession(name, self.sessions[name] - now) for name in changed if name in self.sessions
            ],
        )

    def _known(self, key: ApiKey, now: datetime) -> KnownKey:
        ends_in = (key.expires_at if key.is_taken(now) else now) - now
        return KnownKey(key.key_id, key.user, key.role, self.codes[key.key_id], ends_in, key.project_id)

    async def note_uses(self, key_ids: list[str], now: datetime) -> None:  # noqa: ARG002  # the port's
        self.uses += key_ids

    async def delete_old(self, before: datetime, now: datetime) -> None:
        raise NotImplementedError


def key_api(keys: MemoryKeys, audit: MemoryAudit) -> GrpcKeyApi:
    manage = ManageKeys(keys=keys, pepper=Pepper(CALLER_KEY.encode()))
    return GrpcKeyApi(manage=manage, keys=keys, audit=audit, clock=SystemClock())
