"""Page tokens: the key after which the next page begins, in a form that callers hand back unread."""

import base64
import binascii


class InvalidToken(ValueError):
    """The text is not a page token."""


def write_page_token(*parts: str | int) -> str:
    """A token of the parts of a key; no part may hold a line feed."""
    return base64.urlsafe_b64encode("\n".join(map(str, parts)).encode()).decode().rstrip("=")


def read_page_token(token: str) -> list[str]:
    """The parts that the token was written with, unchecked; raises InvalidToken."""
    try:
        padded = token + "=" * (-len(token) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode().split("\n")
    except (ValueError, binascii.Error) as error:
        raise InvalidToken(token) from error
