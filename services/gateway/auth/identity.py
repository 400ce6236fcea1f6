"""The caller of a request, the same for HTTP and gRPC.

With API keys configured, each call outside of the public ones presents one of them, or one that an operator
made (`key_ring`), and the user is the holder of the key. Without configured keys a call without a key is of
the name in X-Proctor-User, else of `local`, and an operator's: this is the single person of a local stack.
gRPC calls carry the same names in their metadata.
"""

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Depends
from pydantic import SecretStr
from starlette.requests import Request

from proctor.values.names.user import LOCAL_USER, Caller, Role, is_user_name
from services.common.api_keys import id_of_key
from services.common.clock import Clock
from services.gateway.auth.key_ring import KeyRing
from services.gateway.http.errors import (
    InvalidUserName,
    KeyMissing,
)

USER_HEADER = "X-Proctor-User"
# Metadata with this suffix holds bytes, and so can hold characters that are not ASCII.
_BINARY_SUFFIX = "-bin"


@dataclass(frozen=True, slots=True)
class ConfiguredUser:
    """A user who has an API key."""

    name: str
    is_operator: bool


class Identity:
    """Finds the caller by the API key and headers of a call."""

    def __init__(
        self, api_keys: Mapping[str, SecretStr], operators: Collection[str] = (), *, ring: KeyRing
    ) -> None:
        """`api_keys` maps the name of a user to its key; `operators` are some of these users."""
        self._api_keys = api_keys
        self._ring = ring
        self._operators = frozenset(operators)

    @property
    def users(self) -> Sequence[ConfiguredUser]:
        """All holders of keys by name, never their keys; none where no keys are configured."""
        return [ConfiguredUser(name, name in self._operators) for name in sorted(self._api_keys)]

    def caller_of(self, headers: Mapping[str, str]) -> Caller:
        """`headers` are case-insensitive.

        Raises `KeyMissing`, `KeyUnknown`, `KeysOutdated` or `InvalidUserName`.
        """
        presented = _presented_key(headers)
        if self._api_keys:
            if not presented:
                raise KeyMissing
            if (name := self._key_holder(presented)) is not None:
                role = Role.OPERATOR if name in self._operators else Role.RUNNER
                return Caller(name, role, is_verified=True)
            return self._ring.caller_of(presented)
        if is_stored_key(headers):
            return self._ring.caller_of(presented)
        return Caller(_given_name(headers) or LOCAL_USER, Role.OPERATOR)

    def _key_holder(self, presented: str) -> str | None:
        for name, key in self._api_keys.items():
            # Compared in constant time, so that the time does not show how much of a key is right.
            if secrets.compare_digest(presented.encode(), key.get_secret_value().encode()):
                return name
        return None


def headers_of(metadata: Iterable[tuple[str, str | bytes]]) -> Mapping[str, str]:
    """The metadata of a gRPC call as headers."""
    return {
        key.removesuffix(_BINARY_SUFFIX): value if isinstance(value, str) else value.decode("latin-1")
        for key, value in metadata
    }


def is_stored_key(headers: Mapping[str, str]) -> bool:
    """Whether the presented key has the form of those that operators make."""
    return id_of_key(_presented_key(headers)) is not None


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
