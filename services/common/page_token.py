"""Page tokens: the key after which the next page begins, in a form that callers hand back unread.

A checksum binds a token to its list, so that one that was changed, or is another list's, is noticed. It is no
secret: a token made by hand is a place in a list that its maker may read anyway.
"""

import base64
import binascii
import hashlib

_CHECKSUM_BYTES = 8


class InvalidToken(ValueError):
    """The text is not a page token of this list."""


def write_page_token(of_list: str, *parts: str | int) -> str:
    """A token of the parts of a key; no part may hold a line feed."""
    key = "\n".join(map(str, parts)).encode()
    return _encoded(_checksum(of_list, key) + key)


def read_page_token(of_list: str, token: str) -> list[str]:
    """The parts that the token was written with; raises InvalidToken."""
    try:
        content = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        checksum, key = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
        # The last letter of base64 can have several forms.
        if checksum != _checksum(of_list, key) or token != _encoded(content):
            raise InvalidToken(token)
        return key.decode().split("\n")
    except (ValueError, binascii.Error) as error:
        raise InvalidToken(token) from error


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _checksum(of_list: str, key: bytes) -> bytes:
    return hashlib.sha256(of_list.encode() + b"\n" + key).digest()[:_CHECKSUM_BYTES]
