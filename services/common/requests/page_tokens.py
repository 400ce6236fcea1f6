"""Page tokens: keys of lists that callers hand back unread; by time and name, by a number, or by a pair."""

import base64
import hashlib
from collections.abc import Callable
from datetime import MAXYEAR, datetime
from typing import TypeVar

from services.common.errors import InvalidPageToken

Parsed = TypeVar("Parsed")
# Detects mistakes, not attackers: a wrong token passes by chance once in 2**64.
_CHECKSUM_BYTES = 8
_END_OF_COUNTS = 2**31
# Postgres's bigint holds no larger ones.
_END_OF_NUMBERS = 2**63


def write_page_token(of_list: str, *parts: str | int) -> str:
    """A token of the parts of a key; no part may hold a line feed."""
    key = "\n".join(map(str, parts)).encode()
    return _encoded(_checksum(of_list, key) + key)


def read_page_token(of_list: str, token: str, key_of: Callable[[list[str]], Parsed]) -> Parsed:
    """The key that `key_of` makes of the parts of a token; its `ValueError` becomes `InvalidPageToken`."""
    try:
        content = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        checksum, key = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
        # The last character of base64 can have several forms.
        if checksum != _checksum(of_list, key) or token != _encoded(content):
            raise InvalidPageToken(page_token=token)
        return key_of(key.decode().split("\n"))
    except (ValueError, OverflowError) as error:
        raise InvalidPageToken(page_token=token) from error


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _checksum(of_list: str, key: bytes) -> bytes:
    """Binds a token to its list, so that a changed token, or one of another list, is refused.

    It is not a secret: a forged token only selects a page of a list that its sender may read anyway.
    """
    return hashlib.sha256(of_list.encode() + b"\n" + key).digest()[:_CHECKSUM_BYTES]


def list_token(of_list: str, time: datetime, name: str, total: int) -> str:
    """A token of the last entry of a page: its time, its name, and how many entries there are in all."""
    return write_page_token(of_list, time.isoformat(), name, total)


def read_list_token(of_list: str, token: str) -> tuple[datetime, str, int]:
    """Raises `InvalidPageToken`, also for what Postgres or a contract cannot hold."""
    return read_page_token(of_list, token, _list_key)


def _list_key(parts: list[str]) -> tuple[datetime, str, int]:
    time, name, total = parts
    at, count = datetime.fromisoformat(time), int(total)
    # The years at both ends can lie outside what Postgres holds in UTC.
    is_moment = at.tzinfo is not None and 1 < at.year < MAXYEAR
    if not (is_moment and 0 <= count < _END_OF_COUNTS):
        raise ValueError("no list has such a key")
    return at, name, count


def number_token(of_list: str, number: int) -> str:
    """A token of the last entry of a page, by a number that Postgres gave it."""
    return write_page_token(of_list, number)


def read_number_token(of_list: str, token: str) -> int | None:
    """The number in a token; None where there is no token. Raises `InvalidPageToken`."""
    return read_page_token(of_list, token, _entry_number) if token else None


def _entry_number(parts: list[str]) -> int:
    [text] = parts
    number = int(text)
    if not 0 < number < _END_OF_NUMBERS:
        raise ValueError("no entry has such a number")
    return number


Key = tuple[int, int]
MAX_NUMBER = 2**31  # both numbers of a key are below


def key_token(of_list: str, key: Key) -> str:
    """The token of the page after a key."""
    return write_page_token(of_list, *key)


def read_key_token(of_list: str, token: str, first: Key) -> Key:
    """The key in a token, or `first` where there is no token. Raises `InvalidPageToken`."""
    return read_page_token(of_list, token, _number_key) if token else first


def _number_key(parts: list[str]) -> Key:
    left, right = map(int, parts)
    if not (0 <= left < MAX_NUMBER and 0 <= right < MAX_NUMBER):
        raise ValueError("no list has such a key")
    return left, right
