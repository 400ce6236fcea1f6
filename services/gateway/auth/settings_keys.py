"""Keys in the settings of the gateway: one for each user, until a restart."""

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pydantic import SecretStr

from proctor.values.names.user import Caller, Role
from services.common.api_keys import Pepper


@dataclass(frozen=True, slots=True)
class ConfiguredUser:
    """A user who has an API key."""

    name: str
    is_operator: bool


class SettingsKeys:
    """Finds the holders of keys. Their codes stand for them in sessions."""

    def __init__(
        self, api_keys: Mapping[str, SecretStr], operators: Collection[str] = (), *, pepper: Pepper
    ) -> None:
        """`api_keys` maps the name of a user to its key; `operators` are some of these users."""
        self._api_keys = api_keys
        self._operators = frozenset(operators)
        self._codes = {name: pepper.code(key.get_secret_value()).hex() for name, key in api_keys.items()}

    def __bool__(self) -> bool:
        return bool(self._api_keys)

    @property
    def users(self) -> Sequence[ConfiguredUser]:
        """All holders of keys by name, never their keys."""
        return [ConfiguredUser(name, name in self._operators) for name in sorted(self._api_keys)]

    def holder(self, presented: str) -> Caller | None:
        for name, key in self._api_keys.items():
            # Compared in constant time, so that the time does not show how much of a key is right.
            if secrets.compare_digest(presented.encode(), key.get_secret_value().encode()):
                return self._caller(name)
        return None

    def code_of(self, user: str) -> str:
        return self._codes[user]

    def holder_by_code(self, user: str, code: str) -> Caller | None:
        """None where the user has another key by now, or none."""
        return self._caller(user) if self._codes.get(user) == code else None

    def _caller(self, name: str) -> Caller:
        role = Role.OPERATOR if name in self._operators else Role.RUNNER
        return Caller(name, role, is_verified=True)
