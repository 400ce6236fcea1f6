"""Page tokens of lists whose keys are two numbers."""

from services.common import page_token
from services.common.errors import DomainError, ErrorKind

Key = tuple[int, int]
LARGEST = 2**31  # both numbers of a key are below


class InvalidPageToken(DomainError):
    """page_token is not one that this list gave. Start again without it."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PAGE_TOKEN"


def write_page_token(key: Key) -> str:
    """The token of the page after a key."""
    return page_token.write_page_token(*key)


def read_page_token(token: str, first: Key) -> Key:
    """The key in a token, or `first` where there is no token. Raises InvalidPageToken."""
    if not token:
        return first
    try:
        left, right = map(int, page_token.read_page_token(token))
    except ValueError as error:
        raise InvalidPageToken(page_token=token) from error
    if not (0 <= left < LARGEST and 0 <= right < LARGEST):
        raise InvalidPageToken(page_token=token)
    return left, right
