"""Files as responses: byte ranges and conditions (RFC 9110, sections 13 and 14), and streamed content."""

import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Generic, Protocol, TypeVar
from urllib.parse import quote

from fastapi import Header
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from proctor.wire.stubs import chunks_of
from services.gateway.http.parameters import Keywords

# At most 19 digits, as many as 2**63 has. Python refuses to read thousands of them, with an error.
_ONE_RANGE = re.compile(r"bytes=\s*([0-9]{0,19})-([0-9]{0,19})\s*", re.IGNORECASE)
_ANY = "*"
# An ETag may hold commas. If-None-Match ignores whether it is weak.
_TAG = re.compile(r'(?:W/)?("[^"]*")')
_UNSAFE_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes from `first`, counted from 0, to before byte `end`."""

    first: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.first


def byte_range(header: str, size: int) -> ByteRange | None:
    """The range that a Range header requests of a file of `size` bytes; None for the whole file.

    Raises 416 for a range outside the file. Several ranges and other units mean the whole file (RFC 9110).
    """
    found = _ONE_RANGE.fullmatch(header)
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        requested = ByteRange(max(size - int(last), 0), size)
    else:
        if last and int(last) < int(first):
            return None
        requested = ByteRange(int(first), min(int(last) + 1, size) if last else size)
    if requested.length <= 0:
        headers = {"Content-Range": f"bytes */{size}"}
        raise HTTPException(416, f"The file has {size} bytes, and none in this range.", headers)
    return requested


class ContentConditions:
    """A dependency of paths that return files. `range` is the Range header; "" means the whole file."""

    def __init__(
        self,
        byte_range: Annotated[
            str, Header(alias="Range", description='One range of bytes, for example "bytes=9-"')
        ] = "",
        if_range: Annotated[str, Header(description="Apply the range only if this is the ETag")] = "",
        if_none_match: Annotated[
            list[str] | None,
            Keywords({"type": "string"}),
            Header(description="ETags that the client has, or *"),
        ] = None,
    ) -> None:
        self.range = byte_range
        self._if_range = if_range.strip()
        # A header may come in several lines, which form one list.
        self._if_none_match = ",".join(if_none_match or ()).strip()

    def range_of(self, tag: str) -> str:
        """The range to send of the content with this ETag.

        A weak tag or a time does not identify bytes: then the whole file is sent.
        """
        return self.range if self._if_range in ("", tag) else ""

    def has(self, tag: str) -> bool:
        """Whether the client has the content with this ETag; `tag` is "" for content without one."""
        return self._if_none_match == _ANY or (bool(tag) and tag in _TAG.findall(self._if_none_match))


class DownloadChunk(Protocol):
    """A message of a streamed file."""

    content: bytes


C = TypeVar("C", bound=DownloadChunk)


@dataclass(frozen=True, slots=True)
class Download(Generic[C]):
    """A streamed file. Its first chunk is received, so errors are reported before the response starts."""

    head: C
    rest: AsyncGenerator[C]

    async def close(self) -> None:
        await self.rest.aclose()

    async def content(self, length: int | None = None) -> AsyncIterator[bytes]:
        """Yields at most `length` bytes. If there are fewer, the server breaks off the response."""
        async with aclosing(self.rest) as rest:
            chunk: C | None = self.head
            while chunk is not None and length != 0:
                if content := chunk.content[:length]:
                    yield content
                length = None if length is None else length - len(content)
                chunk = None if length == 0 else await anext(rest, None)


async def begin(chunks: AsyncIterable[C], empty: C) -> Download[C]:
    """`empty` is the first chunk of a stream without chunks."""
    rest = chunks_of(chunks)
    # Once the response has begun, its status can no longer say what went wrong.
    return Download(await anext(rest, empty), rest)


@dataclass(frozen=True, slots=True)
class FileHeaders:
    """Headers of a download.

    It cannot be resumed without a `tag`; without `total_bytes` its length is not announced. `policy` is the
    Content-Security-Policy of a file that a browser shows.
    """

    disposition: str
    media_type: str = "application/octet-stream"
    tag: str = ""
    total_bytes: int | None = None
    policy: str = ""

    def of(self, requested: ByteRange | None) -> Mapping[str, str]:
        headers = {"Content-Disposition": self.disposition}
        if self.policy:
            headers["Content-Security-Policy"] = self.policy
        if self.tag:
            headers |= {"ETag": self.tag, "Accept-Ranges": "bytes"}
        if requested:
            headers["Content-Range"] = f"bytes {requested.first}-{requested.end - 1}/{self.total_bytes}"
        length = self.length(requested)
        return headers if length is None else headers | {"Content-Length": str(length)}

    def length(self, requested: ByteRange | None) -> int | None:
        return requested.length if requested else self.total_bytes


def file_response(
    download: Download[C], headers: FileHeaders, requested: ByteRange | None = None
) -> StreamingResponse:
    return StreamingResponse(
        download.content(headers.length(requested)),
        status_code=206 if requested else 200,
        media_type=headers.media_type,
        headers=headers.of(requested),
    )


def attachment(name: str, *, is_ascii: bool = False, is_shown: bool = False) -> str:
    """A Content-Disposition with the name in ASCII and, unless `is_ascii`, as it is.

    A browser opens a file that `is_shown` as a page; the name is that under which it is saved.
    """
    kind = "inline" if is_shown else "attachment"
    plain = f'{kind}; filename="{_UNSAFE_IN_NAMES.sub("_", name)}"'
    return plain if is_ascii else f"{plain}; filename*=UTF-8''{quote(name, safe='')}"
