"""The port by which keys are stored."""

from datetime import datetime
from typing import Protocol

from services.scheduler.audit.audit_record import Author
from services.scheduler.keys.api_key import AccessChanges, ApiKey, KeyPage, Replaced


class KeyStore(Protocol):
    """Keys and the ends of sessions. Each change has a version, and versions are in the order of commits."""

    async def add(
        self, key: ApiKey, code: bytes, author: Author, *, replaced: Replaced | None = None
    ) -> None:
        """Stores a key, the end of the one it replaces and the change of its author.

        Raises `TooManyKeys`, or `KeyEnded` for a replaced one that was revoked.
        """
        ...

    async def find(self, key_id: str) -> ApiKey | None: ...

    async def is_member(self, project_id: int, user: str) -> bool:
        """Whether the user has a role in a declared project, or everybody has."""
        ...

    async def page(self, size: int, before: int | None, user: str) -> KeyPage:
        """Keys with a number below `before`; those of all users where `user` is empty."""
        ...

    async def revoke(self, key_id: str, author: Author) -> None:
        """Does nothing to a key that was revoked before."""
        ...

    async def end_session(self, session_id: str, ends_at: datetime, author: Author) -> None: ...

    async def changes_behind(self, version: int, now: datetime, limit: int) -> AccessChanges: ...

    async def note_uses(self, key_ids: list[str], now: datetime) -> None: ...

    async def delete_old(self, before: datetime, now: datetime) -> None:
        """Deletes keys that ended before, and ended sessions that would be over."""
        ...
