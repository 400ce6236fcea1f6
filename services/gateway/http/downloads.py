"""The Range of a request for a file whose length is known.
Which part of some content a request wants, and on what condition (RFC 9110, sections 13 and 14).
"""

import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import Header
from starlette.exceptions import HTTPException

_ONE_RANGE = re.compile(r"bytes=\s*([0-9]{0,19})-([0-9]{0,19})\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ByteRange:
    """From the byte `first`, counted from 0, to before the byte `end`."""

    first: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.first


def byte_range(header: str, size: int) -> ByteRange | None:
    """What `header` asks of a file of `size` bytes; None for all of it. Raises 416 for what it does not have.

    Several ranges at once and other units are not understood: RFC 9110 has them answered with the whole file.
    """
    found = _ONE_RANGE.fullmatch(header)
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        # The last so many bytes.
        asked = ByteRange(max(size - int(last), 0), size)
    else:
        if last and int(last) < int(first):
            return None
        asked = ByteRange(int(first), min(int(last) + 1, size) if last else size)
    if asked.length <= 0:
        headers = {"Content-Range": f"bytes */{size}"}
        raise HTTPException(416, f"The file has {size} bytes, and none in this range.", headers)
    return asked


_ANY = "*"
# An ETag may hold commas. Whether it is weak does not matter to If-None-Match.
_TAG = re.compile(r'(?:W/)?("[^"]*")')


class ContentConditions:
    """A dependency of paths whose answer may be gone on with. `range` is as it came; "" for all."""

    def __init__(
        self,
        byte_range: Annotated[
            str, Header(alias="Range", description='One of bytes, such as "bytes=9-"')
        ] = "",
        if_range: Annotated[str, Header(description="The range only if this is its ETag")] = "",
        if_none_match: Annotated[
            list[str] | None, Header(description="ETags of what the client has, or *")
        ] = None,
    ) -> None:
        self.range = byte_range
        self._if_range = if_range.strip()
        # A header that comes in several lines is one list.
        self._if_none_match = ",".join(if_none_match or ()).strip()

    def range_of(self, tag: str) -> str:
        """The range that is wanted of the content with this ETag.

        A weak tag, or a time, says too little of bytes: then all of them are sent.
        """
        return self.range if self._if_range in ("", tag) else ""

    def has(self, tag: str) -> bool:
        """Whether the client has the content with this ETag; `tag` is "" where it has none."""
        return self._if_none_match == _ANY or (bool(tag) and tag in _TAG.findall(self._if_none_match))
