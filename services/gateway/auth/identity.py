"""The caller of a request, the same for HTTP and gRPC.

With API keys configured, each call outside of the public ones presents one of them, or one that an operator
made (`key_ring`), and the user is the holder of the key. Without configured keys a call without a key is of
the name in X-Proctor-User, else of `local`, and an operator's: this is the single person of a local stack.
gRPC calls carry the same names in their metadata.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from proctor.values.names.user import LOCAL_USER, Caller, Role, is_user_name
from services.common.api_keys import id_of_key
from services.common.clock import Clock
from services.gateway.auth.key_ring import KeyRing
from services.gateway.auth.sessions import Sessions
from services.gateway.auth.settings_keys import SettingsKeys
from services.gateway.http.errors import InvalidUserName, KeyMissing, KeyUnknown, SessionOver

USER_HEADER = "X-Proctor-User"
# Metadata with this suffix holds bytes, and so can hold characters that are not ASCII.
_BINARY_SUFFIX = "-bin"
# Between header, claims and signature.
_POINTS_OF_TOKEN = 2


class Identity:
    """Finds the caller by the API key and headers of a call, or by the session of a browser."""

    def __init__(
        self, *, settings: SettingsKeys, ring: KeyRing, sessions: Sessions, has_provider: bool = False
    ) -> None:
        """`has_provider`: users have tokens of an OpenID provider, and nobody is served without a proof."""
        self._has_provider = has_provider
        self.settings = settings
        self.sessions = sessions
        self._ring = ring

    def caller_of(self, headers: Mapping[str, str], session: str = "") -> Caller:
        """`headers` are case-insensitive. A key in them is taken before the session.

        Raises `KeyMissing`, `KeyUnknown`, `KeysOutdated`, `SessionOver` or `InvalidUserName`.
        """
        presented = _presented_key(headers)
        if self.settings or self._has_provider:
            if not presented:
                if not session:
                    raise KeyMissing
                return self.sessions.caller_of(session)
            return self.settings.holder(presented) or self._ring.caller_of(presented)
        if is_stored_key(headers):
            return self._ring.caller_of(presented)
        if session and not presented:
            # One of another gateway at this host says nothing here.
            with suppress(KeyUnknown, SessionOver):
                return self.sessions.caller_of(session)
        return Caller(_given_name(headers) or LOCAL_USER, Role.OPERATOR)


def headers_of(metadata: Iterable[tuple[str, str | bytes]]) -> Mapping[str, str]:
    """The metadata of a gRPC call as headers."""
    return {
        key.removesuffix(_BINARY_SUFFIX): value if isinstance(value, str) else value.decode("latin-1")
        for key, value in metadata
    }


def is_stored_key(headers: Mapping[str, str]) -> bool:
    """Whether the presented key has the form of those that operators make."""
    return bool(presented_key_id(headers))


def presented_key_id(headers: Mapping[str, str]) -> str:
    """The id in a key that operators made, or one that looks so; "" for others."""
    return id_of_key(_presented_key(headers)) or ""


def presented_token(headers: Mapping[str, str]) -> str:
    """A bearer token of the form that providers sign; "" for another key, or none."""
    presented = _presented_key(headers)
    return presented if presented.startswith("eyJ") and presented.count(".") == _POINTS_OF_TOKEN else ""


def _presented_key(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")


def _given_name(headers: Mapping[str, str]) -> str:
    given = headers.get(USER_HEADER.lower())
    if given is None:
        return ""
    try:
        # HTTP passes each byte of UTF-8 as one character.
        name = given.encode("latin-1").decode().strip()
    except UnicodeError as error:
        raise InvalidUserName from error
    if not is_user_name(name):
        raise InvalidUserName
    return name


async def _caller(request: Request) -> Caller:
    # Found once, when the request was admitted.
    caller: Caller = request.state.caller
    return caller


async def _user(caller: Annotated[Caller, Depends(_caller)]) -> str:
    return caller.name


async def _now(request: Request) -> datetime:
    clock: Clock = request.app.state.clock
    return clock.now()


# Dependencies of handlers: the caller and the time.
CallerOf = Annotated[Caller, Depends(_caller)]
User = Annotated[str, Depends(_user)]
Now = Annotated[datetime, Depends(_now)]
