"""One HTTP/1.1 connection to a model server: it carries one exchange at a time.

httptools reads the bytes; what a response is, when a connection can be used again and how much may arrive
unread is decided here. Decision record: docs/decisions/0015-samples-go-over-our-own-connections.md.
"""

import asyncio
import zlib
from collections.abc import Mapping
from typing import cast

import httptools

from services.worker.engines.errors import ProviderFailed

# Where the reader of a body is this much behind, the server has to wait.
_MAX_UNREAD_BYTES = 1024 * 1024
_MAX_HEADER_BYTES = 64 * 1024
# A small body may unpack to a huge one: it is unpacked as it is read.
_UNPACKED_AT_A_TIME = 1024 * 1024
_NO_BODY = frozenset({204, 304})
# Both forms of "deflate" are in use: with the header of zlib and without.
_ZLIB_OR_GZIP = zlib.MAX_WBITS | 32
_BARE_DEFLATE = -zlib.MAX_WBITS
ACCEPTED_ENCODINGS = "gzip, deflate"
_PACKED = frozenset({"gzip", "x-gzip", "deflate"})
# Some servers name the letters of the text here, or nothing: that is a plain body.
_REFUSED = frozenset({"br", "zstd", "compress", "x-compress"})


class ServerDisconnected(ConnectionError):
    """The connection ended before a response began, or what came was none."""


class ResponseCutOff(Exception):
    """The connection ended, or stopped making sense, in the middle of a response."""


class Response:
    """A response as it arrives. `headers` have lowercase names."""

    __slots__ = (
        "_chunks", "_ends_with_connection", "_error", "_has_rest", "_is_late", "_loop", "_timer",
        "_transport", "_unpacker", "_waiter", "headers", "is_whole", "status", "unread_bytes",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, seconds: float) -> None:
        self._loop = loop
        self._transport = transport
        self._timer = loop.call_later(seconds, self._expire)
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._chunks: list[bytes] = []
        self._unpacker: _Unpacker | None = None
        # Whether some of what has arrived is still to be unpacked.
        self._has_rest = False
        self._is_late = False
        self._ends_with_connection = False
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.is_whole = False
        self.unread_bytes = 0

    async def begin(self) -> None:
        """Waits for the headers. Raises TimeoutError, ServerDisconnected or OSError."""
        while not self.status:
            await self._next()

    async def readany(self) -> bytes:
        """What has arrived of the body, unpacked; empty at its end. Raises as `begin`, or ResponseCutOff."""
        while True:
            if self._chunks:
                if self._has_rest:
                    # What unpacks to very much must neither hold up other requests nor outlive its time.
                    await asyncio.sleep(0)
                    if self._is_late:
                        raise TimeoutError
                piece = self._take()
                if piece:
                    return piece
            elif self.is_whole:
                if self._unpacker is not None:
                    self._unpacker.require_end()
                return b""
            else:
                await self._next()

    def _take(self) -> bytes:
        piece = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        if self._unpacker is not None:
            piece, rest = self._unpacker.unpack(piece)
            self._has_rest = bool(rest)
            if rest:
                self._chunks.append(rest)
                return piece
        if self.unread_bytes > _MAX_UNREAD_BYTES:
            self._transport.resume_reading()
        self.unread_bytes = 0
        return piece

    async def _next(self) -> None:
        """Waits until more has arrived."""
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        await self._waiter

    def on_headers(self, status: int, headers: Mapping[str, str]) -> None:
        self.status, self.headers = status, headers
        encoding = headers.get("content-encoding", "").strip().lower()
        if encoding in _PACKED or encoding in _REFUSED:
            self._unpacker = _Unpacker(encoding)
        is_chunked = headers.get("transfer-encoding", "").rstrip().lower().endswith("chunked")
        has_length = is_chunked or "content-length" in headers
        self._ends_with_connection = not has_length and status not in _NO_BODY
        self._wake()

    def on_body(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        was_full = self.unread_bytes > _MAX_UNREAD_BYTES
        self.unread_bytes += len(chunk)
        if self.unread_bytes > _MAX_UNREAD_BYTES and not was_full:
            self._transport.pause_reading()
        self._wake()

    def on_end(self) -> None:
        self.is_whole = True
        self._wake()

    def on_connection_lost(self, error: Exception | None) -> None:
        if self.is_whole:
            return
        if self.status and self._ends_with_connection and error is None:
            self.on_end()
        elif self.status:
            self.fail(ResponseCutOff())
        else:
            self.fail(error or ServerDisconnected())

    def fail(self, error: Exception) -> None:
        """Only the first failure counts, and none after the end. What has arrived is still read."""
        if self._error is None and not self.is_whole:
            self._error = error
            self._wake()

    def _expire(self) -> None:
        # An answer that is whole is read, however late its reader is, unless it is still being unpacked.
        self._is_late = True
        self.fail(TimeoutError())

    def drop(self) -> None:
        """Nobody reads it any more."""
        self._timer.cancel()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


class Connection(asyncio.Protocol):
    """Opened by its pool. `idle_since` is the loop's time at which its last exchange ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._response: Response | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        # Since the last byte of a body: what is no body is bounded, wherever it stands.
        self._header_bytes = 0
        self._is_interim = False
        self._is_surplus = False
        self._is_kept = False
        self._parser = httptools.HttpResponseParser(self)
        # Real servers end lines by LF alone and pad the lengths of chunks.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self.idle_since = 0.0

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def send(self, head: bytes, body: bytes, seconds: float) -> Response:
        """`seconds` are for the whole response. Raises ServerDisconnected where the connection is closed."""
        transport = self._transport
        if transport is None:
            raise ServerDisconnected
        self._response = response = Response(self._loop, transport, seconds)
        transport.write(head + body)
        return response

    def end_exchange(self) -> bool:
        """Whether another exchange may follow; otherwise the connection has been closed."""
        response, self._response = self._response, None
        if response is not None:
            response.drop()
        if response is None or not self._may_go_on(response):
            self.close()
        self.idle_since = self._loop.time()
        return self.is_open

    def _may_go_on(self, response: Response) -> bool:
        """Whether nothing of this exchange is left on its way, in either direction."""
        if not response.is_whole or response.unread_bytes or not self._is_kept or self._is_surplus:
            return False
        # A server that answers early may never read the rest of the request.
        return self._transport is not None and not self._transport.get_write_buffer_size()

    def close(self) -> None:
        """At once, so that the server stops answering."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Those of uvloop have no common base with asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        response = self._response
        if response is None or response.is_whole:
            # Nothing was asked: whatever this answers, it is no later request.
            self.close()
            return
        self._header_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            response.on_connection_lost(ServerDisconnected())
            self.close()
            return
        if self._header_bytes > _MAX_HEADER_BYTES:
            response.on_connection_lost(ServerDisconnected())
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._response is not None:
            self._response.on_connection_lost(exc)

    def on_message_begin(self) -> None:
        # More than was asked for: not even the next request may take it for its answer.
        self._is_surplus = self._response is None or self._response.is_whole

    def on_header(self, name: bytes, value: bytes) -> None:
        # Those behind a body are no one's.
        if self._response is not None and not self._response.status:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        # "Continue" and "Early Hints" come before the response.
        self._is_interim = status < 200
        if self._response is not None and not self._is_interim and not self._is_surplus:
            headers = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._headers
            }
            self._response.on_headers(status, headers)
        self._headers.clear()
        self._header_bytes = 0

    def on_body(self, body: bytes) -> None:
        self._header_bytes = 0
        if self._response is not None and not self._is_surplus:
            self._response.on_body(body)

    def on_message_complete(self) -> None:
        if self._response is not None and not self._is_interim and not self._is_surplus:
            # Only here: behind the message the parser has forgotten it.
            self._is_kept = self._parser.should_keep_alive()
            self._header_bytes = 0
            self._response.on_end()


class _Unpacker:
    """Unpacks a body a piece at a time."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._stream = zlib.decompressobj(_ZLIB_OR_GZIP)
        # The two bytes that tell the forms apart may arrive one by one.
        self._begun = b""
        self._is_first = True

    def unpack(self, packed: bytes) -> tuple[bytes, bytes]:
        """A piece, and what is left of `packed`. Raises ResponseCutOff or ProviderFailed."""
        if self._encoding in _REFUSED:
            raise ProviderFailed(
                f"The server compressed its answer by {self._encoding}, which was not asked for."
            )
        if self._is_first:
            packed = self._begun = self._begun + packed
            if len(packed) < 2:
                return b"", b""
        try:
            piece = self._decompress(packed)
        except zlib.error as error:
            raise ResponseCutOff from error
        self._is_first, self._begun = False, b""
        return piece, self._stream.unused_data or self._stream.unconsumed_tail

    def _decompress(self, packed: bytes) -> bytes:
        if self._stream.eof:
            # A body of gzip may have several members; what else follows cannot be read.
            self._stream = zlib.decompressobj(_ZLIB_OR_GZIP)
        try:
            return self._stream.decompress(packed, _UNPACKED_AT_A_TIME)
        except zlib.error:
            if not self._is_first:
                raise
        self._stream = zlib.decompressobj(_BARE_DEFLATE)
        return self._stream.decompress(packed, _UNPACKED_AT_A_TIME)

    def require_end(self) -> None:
        """Raises ResponseCutOff for a body that is not whole."""
        if self._begun or not (self._is_first or self._stream.eof):
            raise ResponseCutOff
