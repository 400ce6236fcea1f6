"""The Range of a request for a file whose length is known."""

import re
from dataclasses import dataclass

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
