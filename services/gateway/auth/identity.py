"""Who asks at either door: the name of the API key, else X-Proctor-User, else `local`.

Unverified, for limits only. On gRPC the same names stand in the metadata of a call.
"""

import secrets
from collections.abc import Iterable, Mapping

from pydantic import SecretStr
from starlette.exceptions import HTTPException
from starlette.requests import Request

from services.gateway.auth.user_name import user_name
from services.gateway.errors.gateway_errors import InvalidUserName

USER_HEADER = "X-Proctor-User"
DEFAULT_USER = "local"
# gRPC carries bytes, and with them letters that are not ASCII, under names that end so.
_OF_BYTES = "-bin"


class Identity:
    """Knows the API keys by the name of who holds them."""

    def __init__(self, api_keys: Mapping[str, SecretStr]) -> None:
        self._api_keys = api_keys

    async def user(self, request: Request) -> str:
        return self.user_of(request.headers)

    async def known_key(self, request: Request) -> None:
        """A dependency of paths whose clients always send a key: where there are any it is one of them."""
        presented = _presented_key(request.headers)
        if self._api_keys and presented and not self._key_holder(presented):
            told = "This API key belongs to nobody here; use one that the operator gave, or none."
            raise HTTPException(401, told, {"WWW-Authenticate": "Bearer"})

    def user_of(self, headers: Mapping[str, str]) -> str:
        """By headers whose case does not matter."""
        return self._named(headers) or DEFAULT_USER

    def named_by(self, metadata: Iterable[tuple[str, str | bytes]]) -> str:
        """By the metadata of a gRPC call; "" where it names nobody."""
        return self._named(
            {
                key.removesuffix(_OF_BYTES): value if isinstance(value, str) else value.decode("latin-1")
                for key, value in metadata
            }
        )

    def _named(self, headers: Mapping[str, str]) -> str:
        return self._key_holder(_presented_key(headers)) or _given_name(headers)

    def _key_holder(self, presented: str) -> str:
        for name, key in self._api_keys.items():
            if secrets.compare_digest(presented.encode(), key.get_secret_value().encode()):
                return name
        return ""


def _presented_key(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")


def _given_name(headers: Mapping[str, str]) -> str:
    given = headers.get(USER_HEADER.lower())
    if given is None:
        return ""
    try:
        # HTTP hands each byte on as a letter.
        return user_name(given.encode("latin-1").decode())
    except UnicodeError as error:
        raise InvalidUserName from error
