"""Stored keys as a replica of the gateway knows them. Calls are checked by it without asking anybody."""

import asyncio
import hmac
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from proctor.v1 import access_service_pb2 as access_pb2
from proctor.values.names.user import OTHER_USERS, Caller, Role
from services.common.api_keys import Pepper, id_of_key
from services.common.clock import Clock
from services.gateway.http.errors import KeysOutdated, KeyUnknown
from services.gateway.http.project_names import ProjectNames

# A replica that has heard nothing for so long takes no stored key: others may be revoked by now.
MAX_AGE_SECONDS = 60.0
# Uses are stored to the minute.
_NOTED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class HeldKey:
    """`ends_at` is of the monotonic clock."""

    user: str
    role: Role
    code: bytes = field(repr=False)
    ends_at: float
    project_id: int = 0


class KeyRing:
    """The stored keys that are taken, and the calls in progress that end with their key."""

    def __init__(self, clock: Clock, pepper: Pepper) -> None:
        self._clock = clock
        self._pepper = pepper
        self._keys: dict[str, HeldKey] = {}
        self._heard_at: float | None = None
        # Sessions that were ended before their time, and until when.
        self._ended: dict[str, float] = {}
        self._tidied_at = 1
        # Roles in declared projects, by user and project.
        self._roles: defaultdict[str, dict[int, Role]] = defaultdict(dict)
        self.project_names = ProjectNames()
        self._noted_at: dict[str, float] = {}
        self._used: set[str] = set()
        self._calls: defaultdict[str, set[asyncio.Timeout]] = defaultdict(set)
        self.version = 0

    def caller_of(self, presented: str) -> Caller:
        """The holder of a key. Raises `KeyUnknown`, or `KeysOutdated` where that cannot be known now."""
        key_id = id_of_key(presented)
        key = self._taken(key_id) if key_id else None
        # Compared in constant time, so that the time does not show how much of a code is right.
        if key_id is None or key is None or not hmac.compare_digest(self._pepper.code(presented), key.code):
            raise KeyUnknown
        return self._used_by(key_id, key)

    def holder(self, key_id: str) -> Caller | None:
        """The holder of a key that was checked before; None once it has ended. Raises `KeysOutdated`."""
        key = self._taken(key_id)
        return self._used_by(key_id, key) if key else None

    def projects_of(self, caller: Caller) -> tuple[tuple[int, Role], ...]:
        """The declared projects that a caller sees, with roles. Raises `KeysOutdated` where there are any.

        Those that are shared have everybody as a viewer. An operator is a member of none, and sees all.
        """
        roles = {} if caller.is_operator else self._roles_of(caller.name)
        if not roles:
            return ()
        self._check_age()
        bound = caller.key_project
        return tuple(sorted((each, role) for each, role in roles.items() if bound in (0, each)))

    def _roles_of(self, user: str) -> Mapping[int, Role]:
        own, shared = self._roles.get(user, {}), self._roles.get(OTHER_USERS, {})
        return {**shared, **own} if shared else own

    def is_ended(self, session_id: str) -> bool:
        return session_id in self._ended

    def end_session(self, session_id: str, lasts_seconds: float) -> None:
        """The session would have lasted so long: it is remembered until then."""
        now = self._clock.monotonic()
        if len(self._ended) >= self._tidied_at:
            # At each doubling only: a replica that starts hears of all of them at once.
            self._ended = {each: until for each, until in self._ended.items() if until > now}
            self._tidied_at = 2 * len(self._ended) + 1
        self._ended[session_id] = now + lasts_seconds
        _end_in(0, self._calls.get(session_id, ()))

    def _used_by(self, key_id: str, key: HeldKey) -> Caller:
        self._note_use(key_id)
        return Caller(key.user, key.role, is_verified=True, key_id=key_id, key_project=key.project_id)

    def _taken(self, key_id: str) -> HeldKey | None:
        self._check_age()
        key = self._keys.get(key_id)
        return key if key and self._clock.monotonic() < key.ends_at else None

    def _check_age(self) -> None:
        if self._heard_at is None or self._clock.monotonic() - self._heard_at > MAX_AGE_SECONDS:
            raise KeysOutdated

    def _note_use(self, key_id: str) -> None:
        now = self._clock.monotonic()
        if now - self._noted_at.get(key_id, -_NOTED_SECONDS) >= _NOTED_SECONDS:
            self._noted_at[key_id] = now
            self._used.add(key_id)

    def take_used(self) -> list[str]:
        """Keys that were used since the last call, each at most once a minute."""
        used, self._used = sorted(self._used), set()
        return used

    def learn(self, changes: access_pb2.ListAccessChangesResponse) -> None:
        """Takes what the scheduler says has changed. Calls whose key ends are ended then."""
        if changes.is_unknown_version:
            self._keys.clear()
            self._roles.clear()
            self.project_names.clear()
            self.version = 0
            # Their keys may be none any more, and no change says so.
            for calls in self._calls.values():
                _end_in(0, calls)
            return
        now = self._clock.monotonic()
        for each in changes.keys:
            ends_in = each.ends_in.ToTimedelta().total_seconds()
            if ends_in > 0:
                role = Role.of_number(each.role)
                held = HeldKey(each.user, role, each.code, now + ends_in, each.project_id)
                self._keys[each.key_id] = held
            else:
                self._keys.pop(each.key_id, None)
                self._noted_at.pop(each.key_id, None)
            _end_in(ends_in, self._calls.get(each.key_id, ()))
        for member in changes.members:
            self._learn_member(member)
        for project in changes.projects:
            self.project_names.learn(project.project_id, project.name)
        for session in changes.sessions:
            self.end_session(session.session_id, session.ends_in.ToTimedelta().total_seconds())
        self.version = changes.version
        if not changes.has_more:
            self._heard_at = now

    def _learn_member(self, member: access_pb2.KnownMember) -> None:
        """What a user has open ends with the role that it was opened with."""
        roles = self._roles[member.user]
        had = roles.pop(member.project_id, None)
        if member.role:
            roles[member.project_id] = Role.of_number(member.role)
        if had and had is not roles.get(member.project_id):
            _end_in(0, self._calls.get(_user(member.user), ()))
        if not roles:
            del self._roles[member.user]

    @asynccontextmanager
    async def while_taken(self, caller: Caller) -> AsyncIterator[None]:
        """Ends what is inside when the key, the token, the session or a role of its caller does.

        Raises `KeyUnknown` then.
        """
        # A project that is shared no more ends what everybody has open: it may be of that project.
        proofs = [_user(caller.name), _user(OTHER_USERS), *filter(None, (caller.key_id, caller.session_id))]
        key = self._keys.get(caller.key_id)
        roles = self._roles_of(caller.name)
        has_lost_role = any(roles.get(project_id) is not role for project_id, role in caller.projects)
        # It may have ended since the caller was found, which waits for the scheduler's count of requests.
        if (caller.key_id and key is None) or self.is_ended(caller.session_id) or has_lost_role:
            raise KeyUnknown
        lasts = [key.ends_at - self._clock.monotonic()] if key else []
        lasts += [caller.ends - self._clock.now().timestamp()] if caller.ends else []
        call = asyncio.timeout(min(lasts, default=None))
        try:
            async with call:
                for each in proofs:
                    self._calls[each].add(call)
                yield
        except TimeoutError:
            if call.expired():
                raise KeyUnknown from None
            raise
        finally:
            for each in proofs:
                self._calls[each].discard(call)
                if not self._calls[each]:
                    del self._calls[each]


def _user(name: str) -> str:
    """Among the ids of keys and sessions, which have no blanks."""
    return f"user {name}"


def _end_in(seconds: float, calls: Iterable[asyncio.Timeout]) -> None:
    at = asyncio.get_running_loop().time() + max(seconds, 0)
    for call in calls:
        # One that is ending may take its time for that.
        if not call.expired():
            call.reschedule(at)
