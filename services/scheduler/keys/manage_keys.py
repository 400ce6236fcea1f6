"""The life of a key: made, replaced, revoked."""

from dataclasses import dataclass
from datetime import timedelta

from proctor.values.names.user import Role
from services.common.api_keys import NewKey, Pepper, new_key
from services.common.checked_fields import invalid_field, nul_problem, refuse
from services.common.requests.request_fields import hidden_problem, user_problem
from services.scheduler.changes.user_change import Author
from services.scheduler.keys.api_key import ApiKey, Replaced
from services.scheduler.keys.errors import KeyEnded, KeyNotFound
from services.scheduler.keys.ports import KeyStore

MAX_NOTE_CHARACTERS = 200
DEFAULT_DAYS, MAX_DAYS = 90, 1825
DEFAULT_OVERLAP_HOURS, MAX_OVERLAP_HOURS = 24, 720


@dataclass(frozen=True, slots=True)
class MadeKey:
    """A key with its whole text, which is not stored."""

    key: ApiKey
    secret: NewKey


@dataclass(frozen=True, slots=True)
class ManageKeys:
    keys: KeyStore
    pepper: Pepper

    async def create(self, *, user: str, role: Role, days: int, note: str, author: Author) -> MadeKey:
        """Raises `InvalidParameter` or `TooManyKeys`."""
        refuse(user_problem(user) or nul_problem("note", note) or hidden_problem("note", note))
        if len(note) > MAX_NOTE_CHARACTERS:
            raise invalid_field("note", f"has more than {MAX_NOTE_CHARACTERS} characters")
        return await self._make(user=user, role=role, days=days, note=note, author=author)

    async def rotate(self, key_id: str, *, days: int, overlap_hours: int | None, author: Author) -> MadeKey:
        """Raises `KeyNotFound`, `KeyEnded`, `InvalidParameter` or `TooManyKeys`."""
        hours = DEFAULT_OVERLAP_HOURS if overlap_hours is None else overlap_hours
        if not 0 <= hours <= MAX_OVERLAP_HOURS:
            raise invalid_field("overlap_hours", f"is {hours}, but must be 0 to {MAX_OVERLAP_HOURS}")
        old = await self._find(key_id)
        if not old.is_taken(author.at):
            raise KeyEnded(key_id=key_id)
        replaced = Replaced(key_id, author.at + timedelta(hours=hours))
        return await self._make(
            user=old.user, role=old.role, days=days, note=old.note, author=author, replaced=replaced
        )

    async def revoke(self, key_id: str, author: Author) -> ApiKey:
        """Raises `KeyNotFound`."""
        await self._find(key_id)
        await self.keys.revoke(key_id, author)
        return await self._find(key_id)

    async def _find(self, key_id: str) -> ApiKey:
        key = await self.keys.find(key_id)
        if key is None:
            raise KeyNotFound(key_id=key_id)
        return key

    async def _make(
        self,
        *,
        user: str,
        role: Role,
        days: int,
        note: str,
        author: Author,
        replaced: Replaced | None = None,
    ) -> MadeKey:
        if not 0 <= days <= MAX_DAYS:
            raise invalid_field("days", f"is {days}, but must be 1 to {MAX_DAYS}, or 0 for {DEFAULT_DAYS}")
        made = new_key()
        key = ApiKey(
            key_id=made.key_id,
            user=user,
            role=role,
            note=note,
            created_by=author.user,
            created_at=author.at,
            expires_at=author.at + timedelta(days=days or DEFAULT_DAYS),
        )
        await self.keys.add(key, self.pepper.code(made.secret), author, replaced=replaced)
        return MadeKey(key, made)
