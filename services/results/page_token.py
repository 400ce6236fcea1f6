"""Page tokens: the key after which the next page begins, in a form that callers hand back unread."""

import base64
import binascii

from services.common.errors import DomainError, ErrorKind

Key = tuple[int, int]
LARGEST = 2**31  # what both kinds of key stay below


def write_page_token(key: Key) -> str:
    """The token of the page after a key."""
    return base64.urlsafe_b64encode(f"{key[0]}.{key[1]}".encode()).decode().rstrip("=")


def read_page_token(token: str, first: Key) -> Key:
    """The key in a token, or `first` where there is no token."""
    if not token:
        return first
    try:
        padded = token + "=" * (-len(token) % 4)
        left, right = base64.b64decode(padded, altchars=b"-_", validate=True).decode().split(".")
        key = int(left), int(right)
    except (ValueError, binascii.Error) as error:
        raise InvalidPageToken(page_token=token) from error
    if not all(0 <= part < LARGEST for part in key):
        raise InvalidPageToken(page_token=token)
    return key


class InvalidPageToken(DomainError):
    """page_token is not one that this list gave. Start again without it."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PAGE_TOKEN"
