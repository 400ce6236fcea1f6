"""Page tokens of lists whose key is a pair of numbers."""

from services.common.checked_fields import read_page_token, write_page_token

Key = tuple[int, int]
LARGEST = 2**31  # both numbers of a key are below


def key_token(of_list: str, key: Key) -> str:
    """The token of the page after a key."""
    return write_page_token(of_list, *key)


def read_key_token(of_list: str, token: str, first: Key) -> Key:
    """The key in a token, or `first` where there is no token. Raises `InvalidPageToken`."""
    return read_page_token(of_list, token, _key) if token else first


def _key(parts: list[str]) -> Key:
    left, right = map(int, parts)
    if not (0 <= left < LARGEST and 0 <= right < LARGEST):
        raise ValueError("no list has such a key")
    return left, right
