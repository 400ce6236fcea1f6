"""Sessions of browsers: a signed text in a cookie, in the place of a key.

It names its key, and ends with it. Every replica of the gateway can check it, and hears of each session that
was ended before its time.
"""

import base64
import hmac
import json
import secrets
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache

from proctor.values.names.user import Caller, Role
from services.common.api_keys import Pepper
from services.common.clock import Clock
from services.gateway.auth.key_ring import KeyRing
from services.gateway.auth.settings_keys import SettingsKeys
from services.gateway.http.errors import KeyUnknown, SessionOver

# Without a request a session lasts so long; a request renews it, up to the longest time from its begin.
LIFETIME = timedelta(hours=12)
LONGEST = timedelta(days=7)
_RENEWED_AFTER = timedelta(hours=1)
# That of a user with the longest name.
MAX_CHARACTERS = 1500
# At most some 6 MB.
_MAX_VERIFIED = 4096


@dataclass(frozen=True, slots=True)
class Session:
    """`key` is the id of a stored key, or the code of the one that the settings give `user`.

    Times are seconds since 1970.
    """

    session_id: str
    user: str
    key: str
    is_stored: bool
    began: int
    renewed: int
    # Of a user whom the provider has signed in: there is no key then.
    role: str = ""

    @property
    def is_by_provider(self) -> bool:
        return bool(self.role)


class Sessions:
    """Begins, reads and renews sessions."""

    def __init__(
        self,
        keys: SettingsKeys,
        ring: KeyRing,
        pepper: Pepper,
        clock: Clock,
        *,
        by_provider: timedelta | None = None,
    ) -> None:
        """`by_provider`: how long a session lasts of a user whom a provider signs in; None without one."""
        self._by_provider = by_provider
        self._keys = keys
        self._ring = ring
        self._pepper = pepper
        self._clock = clock
        # A page sends the same text again and again; what was no session is not kept.
        self._verified = lru_cache(maxsize=_MAX_VERIFIED)(self._verify)

    def begin(self, caller: Caller) -> str:
        """The text of a new session of a caller whose key was checked."""
        now = self._now()
        key = caller.key_id or self._keys.code_of(caller.name)
        session_id = secrets.token_urlsafe(16)
        return self._signed(Session(session_id, caller.name, key, bool(caller.key_id), now, now))

    def begin_by_provider(self, caller: Caller) -> str:
        """The text of a new session of a caller whom the provider has signed in."""
        now, session_id = self._now(), secrets.token_urlsafe(16)
        begun = Session(session_id, caller.name, "", is_stored=False, began=now, renewed=now)
        return self._signed(replace(begun, role=caller.role.value))

    def read(self, text: str) -> Session:
        """Raises `KeyUnknown` for what no gateway has written, and `SessionOver`."""
        session = self._verified(text[:MAX_CHARACTERS])
        if self._now() >= self._ends(session) or self._ring.is_ended(session.session_id):
            raise SessionOver
        return session

    def caller_of(self, text: str) -> Caller:
        """The holder of the key that the session began with. Raises what `read` does, and `KeysOutdated`."""
        session = self.read(text)
        if session.is_by_provider:
            caller = self._signed_in(session)
        elif session.is_stored:
            caller = self._ring.holder(session.key)
        else:
            caller = self._keys.holder_by_code(session.user, session.key)
        if caller is None:
            raise SessionOver
        return replace(caller, session_id=session.session_id, ends=self._ends(session))

    def _signed_in(self, session: Session) -> Caller | None:
        if self._by_provider is None:
            return None
        return Caller(session.user, Role(session.role), is_verified=True)

    def renewed(self, text: str) -> str:
        """The text of the session as it goes on; "" while that is no other one."""
        session, now = self.read(text), self._now()
        if session.is_by_provider or now - session.renewed < _RENEWED_AFTER.total_seconds():
            return ""
        return self._signed(replace(session, renewed=now))

    def is_due(self, text: str) -> bool:
        """Whether the provider is to be asked again: it may have taken a role away, and tells nobody.

        From the half of a session on, so that one who goes on is not interrupted by its end.
        """
        try:
            session = self._verified(text[:MAX_CHARACTERS])
        except KeyUnknown:
            return False
        if not session.is_by_provider or self._by_provider is None:
            return False
        if self._ring.is_ended(session.session_id):
            return False
        return self._now() - session.began >= self._by_provider.total_seconds() / 2

    def _ends(self, session: Session) -> int:
        """Seconds since 1970."""
        if session.is_by_provider:
            lasts = self._by_provider or timedelta()
            return session.began + int(lasts.total_seconds())
        last = session.began + int(LONGEST.total_seconds())
        return min(session.renewed + int(LIFETIME.total_seconds()), last)

    def left_of(self, session: Session) -> timedelta:
        """The longest time that the session could still last."""
        return timedelta(seconds=session.began - self._now()) + LONGEST

    def _verify(self, text: str) -> Session:
        content, _, code = text.rpartition(".")
        if not hmac.compare_digest(_packed(self._pepper.code(content)).encode(), code.encode()):
            raise KeyUnknown
        return Session(*json.loads(base64.urlsafe_b64decode(content)))

    def _signed(self, session: Session) -> str:
        values = (
            session.session_id,
            session.user,
            session.key,
            session.is_stored,
            session.began,
            session.renewed,
            session.role,
        )
        content = _packed(json.dumps(values, ensure_ascii=False).encode())
        return f"{content}.{_packed(self._pepper.code(content))}"

    def _now(self) -> int:
        return int(self._clock.now().timestamp())


def _packed(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode()
