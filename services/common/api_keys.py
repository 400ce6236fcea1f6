"""The form of API keys, and the code by which one is known: an HMAC, so that tables hold no key.

A key is "proctor_", its id of 16 hexadecimal digits, "_" and a secret of 256 bits. Id and secret are HMACs of
the request that makes it, so that a request whose answer was lost can be repeated.
"""

import hmac
import re
from dataclasses import dataclass, field

_START = "proctor_"
_FORM = re.compile(rf"{_START}([0-9a-f]{{16}})_[0-9a-f]{{64}}")


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key with its secret, which nothing but the answer to its maker shows."""

    key_id: str
    secret: str = field(repr=False)


def shown_prefix(key_id: str) -> str:
    """The begin of a key, which is no secret."""
    return f"{_START}{key_id}_"


def id_of_key(presented: str) -> str | None:
    """The id in a key; None for a text that has not the form of one."""
    found = _FORM.fullmatch(presented)
    return found[1] if found else None


class Pepper:
    """Makes the codes of keys. Its secret is no part of Postgres: who reads or writes rows makes no key."""

    def __init__(self, caller_key: bytes, purpose: bytes = b"api keys") -> None:
        """`purpose` keeps codes of one kind from being taken for those of another."""
        self._secret = hmac.digest(caller_key, purpose, "sha256")

    def new_key(self, request_id: str) -> NewKey:
        """The key that a request makes: the same one when it is repeated. `request_id` begins with a UUID."""
        key_id = self.code(f"id of {request_id}").hex()[:16]
        return NewKey(key_id, f"{shown_prefix(key_id)}{self.code(f'secret of {request_id}').hex()}")

    def code(self, text: str) -> bytes:
        return hmac.digest(self._secret, text.encode(), "sha256")
