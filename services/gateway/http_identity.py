"""Who asks at either door: the name of the API key, else X-Proctor-User, else `local`.

Unverified, for limits only. On gRPC the same names stand in the metadata of a call.
"""

import secrets
from collections.abc import Mapping

from pydantic import SecretStr
from starlette.requests import Request

from services.gateway.errors import InvalidUserName

USER_HEADER = "X-Proctor-User"
DEFAULT_USER = "local"


class Identity:
    """Knows the API keys by the name of who holds them."""

    def __init__(self, api_keys: Mapping[str, SecretStr]) -> None:
        self._api_keys = api_keys

    async def user(self, request: Request) -> str:
        """Made for FastAPI's Depends."""
        return self.user_of(request.headers)

    def user_of(self, headers: Mapping[str, str]) -> str:
        """By headers with names in lower case, or whose case does not matter."""
        return self._key_holder(_presented_key(headers)) or _named_user(headers)

    def _key_holder(self, presented: str) -> str:
        for name, key in self._api_keys.items():
            if secrets.compare_digest(presented.encode(), key.get_secret_value().encode()):
                return name
        return ""


def _presented_key(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")


def _named_user(headers: Mapping[str, str]) -> str:
    name = headers.get(USER_HEADER.lower(), DEFAULT_USER).strip()
    if not (0 < len(name) <= 128 and name.isprintable()):
        raise InvalidUserName
    return name
