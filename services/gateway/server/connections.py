"""Bounds of an HTTP connection before there is a request: its headers, their time, and how many there are."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

# Cookies and a trace need some 10 KiB; each connection may hold this much before it has a caller.
_MAX_HEADER_BYTES = 64 * 1024
# A client that sends its headers byte by byte holds a connection no longer than this.
_HEADER_SECONDS = 10.0


class _HeadersTooLarge(Exception):
    """Raised inside the parser, which reports it as a request that it cannot read."""


class BoundedConnection(HttpToolsProtocol):
    """A connection whose headers are small and soon complete.

    The parser keeps the whole of a header to itself until its end, and waits for it for ever.
    """

    def __init__(self, *, max_connections: int, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self._max_connections = max_connections
        self._waiting_bytes = 0
        self._header_bytes = 0
        self._is_too_large = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """No request has come yet, or not all of its headers."""
        return self._timer is not None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._begin_headers()
        if len(self.connections) > self._max_connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_headers()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._header_bytes = 0
        self._begin_headers()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Counts headers behind a chunked body too."""
        # With the colon, the space and the line's end.
        self._check_size(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._check_size(len(self.url))
        self._end_headers()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._waiting_bytes = self._waiting_bytes + len(data) if self.is_waiting else 0
        if self._waiting_bytes > _MAX_HEADER_BYTES and not self.transport.is_closing():
            self._is_too_large = True
            self.send_400_response("")

    def send_400_response(self, msg: str) -> None:
        """431 where the headers are too large."""
        if not self._is_too_large:
            super().send_400_response(msg)
            return
        self.transport.write(STATUS_LINE[431] + b"content-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()

    def _check_size(self, more: int) -> None:
        self._header_bytes += more
        if self._header_bytes > _MAX_HEADER_BYTES:
            self._is_too_large = True
            raise _HeadersTooLarge

    def _begin_headers(self) -> None:
        self._end_headers()
        self._timer = self.loop.call_later(_HEADER_SECONDS, self.transport.close)

    def _end_headers(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = None

    def _make_room(self) -> None:
        """Closes a connection that waits, so that idle ones do not keep the others out; else this one."""
        others = (each for each in self.connections if each is not self)
        waiting = (each for each in others if isinstance(each, BoundedConnection) and each.is_waiting)
        # `abort` and not `close`: a peer that reads nothing would keep a closing connection open.
        next(waiting, self).transport.abort()
