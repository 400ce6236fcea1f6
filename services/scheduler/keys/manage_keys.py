"""The life of a key: made, replaced, revoked."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from proctor.values.names.user import Role
from services.common.api_keys import NewKey, Pepper
from services.common.checked_fields import checked_number, invalid_field, nul_problem, refuse
from services.common.errors import InvalidParameter
from services.common.requests.request_fields import hidden_problem, user_problem
from services.scheduler.audit.audit_record import Author
from services.scheduler.keys.api_key import ApiKey, Replaced
from services.scheduler.keys.errors import KeyEnded, KeyNotFound, KeyRequestTaken
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
class KeyOrder:
    """What a new key is to be."""

    user: str
    role: Role
    note: str
    project_id: int
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class ManageKeys:
    keys: KeyStore
    pepper: Pepper

    async def create(
        self,
        *,
        user: str,
        role: Role,
        days: int,
        note: str,
        author: Author,
        request_id: str,
        project_id: int = 0,
    ) -> MadeKey:
        """`project_id` is the one that the key is bound to, if any.

        Raises `InvalidParameter`, `KeyRequestTaken` or `TooManyKeys`.
        """
        refuse(user_problem(user) or nul_problem("note", note) or hidden_problem("note", note))
        if len(note) > MAX_NOTE_CHARACTERS:
            raise invalid_field("note", f"has more than {MAX_NOTE_CHARACTERS} characters")
        order = KeyOrder(user, role, note, project_id, author.at + _lasts(days))
        new = self.pepper.new_key(request_id)
        if made := await self._made(new):
            if (made.key.user, made.key.role, made.key.project_id) != (user, role, project_id):
                raise KeyRequestTaken(key_id=made.key.key_id)
            return made
        if project_id:
            await self._check_project(order)
        return await self._store(new, order, author)

    async def rotate(
        self, key_id: str, *, days: int, overlap_hours: int | None, author: Author, request_id: str
    ) -> MadeKey:
        """Raises `KeyNotFound`, `KeyEnded`, `InvalidParameter` or `TooManyKeys`."""
        hours = DEFAULT_OVERLAP_HOURS if overlap_hours is None else overlap_hours
        if not 0 <= hours <= MAX_OVERLAP_HOURS:
            raise invalid_field("overlap_hours", f"is {hours}, but must be 0 to {MAX_OVERLAP_HOURS}")
        expires_at = author.at + _lasts(days)
        # The id of a request that made or replaced another key replaces this one all the same.
        new = self.pepper.new_key(f"{request_id} for {key_id}")
        if made := await self._made(new):
            return made
        old = await self._find(key_id)
        if not old.is_taken(author.at):
            raise KeyEnded(key_id=key_id)
        order = KeyOrder(old.user, old.role, old.note, old.project_id, expires_at)
        return await self._store(new, order, author, Replaced(key_id, author.at + timedelta(hours=hours)))

    async def revoke(self, key_id: str, author: Author) -> ApiKey:
        """Raises `KeyNotFound`."""
        await self._find(key_id)
        await self.keys.revoke(key_id, author)
        return await self._find(key_id)

    async def _made(self, new: NewKey) -> MadeKey | None:
        """The key that the same request has made before."""
        key = await self.keys.find(new.key_id)
        return MadeKey(key, new) if key else None

    async def _check_project(self, order: KeyOrder) -> None:
        """A key adds nothing to the role of its user in the project."""
        if order.role is Role.OPERATOR:
            raise invalid_field("role", "is operator, but operators see all projects. Bind another role")
        if not await self.keys.is_member(order.project_id, order.user):
            sentence = (
                f"{order.user} has no role in project {order.project_id}: give one first, with "
                f"`proctor projects set-member`."
            )
            raise InvalidParameter(field="project_id", sentence=sentence)

    async def _find(self, key_id: str) -> ApiKey:
        key = await self.keys.find(key_id)
        if key is None:
            raise KeyNotFound(key_id=key_id)
        return key

    async def _store(
        self, new: NewKey, order: KeyOrder, author: Author, replaced: Replaced | None = None
    ) -> MadeKey:
        key = ApiKey(
            key_id=new.key_id,
            user=order.user,
            role=order.role,
            note=order.note,
            created_by=author.user,
            created_at=author.at,
            expires_at=order.expires_at,
            project_id=order.project_id,
        )
        await self.keys.add(key, self.pepper.code(new.secret), author, replaced=replaced)
        return MadeKey(key, new)


def _lasts(days: int) -> timedelta:
    return timedelta(days=checked_number("days", days, maximum=MAX_DAYS, default=DEFAULT_DAYS))
