"""Page tokens of lists: by time and name, or by a pair of numbers."""

from datetime import MAXYEAR, datetime

from services.common.checked_fields import (
    read_page_token,
    write_page_token,
)

_END_OF_COUNTS = 2**31
# Postgres's bigint holds no larger ones.
_END_OF_NUMBERS = 2**63


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
