"""Bounds of HTTP connections: their headers, peers that read nothing, and how many there are."""

import asyncio
from typing import Any

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

# Cookies and a trace need some 10 KiB; each connection may hold this much before it has a caller.
_MAX_HEADER_BYTES = 64 * 1024
# A client that sends its headers byte by byte holds a connection no longer than this.
_HEADER_SECONDS = 10.0
# A peer that takes none of the bytes of its answers for so long is gone, or keeps others out.
_STALLED_SECONDS = 30.0
_POLL_SECONDS = 5.0
# The same limit while all connections are in use.
_STALLED_SECONDS_WHEN_FULL = 1.0


class UnsentBytes:
    """The bytes of one connection that its peer has not taken yet. Times are in seconds of one clock."""

    def __init__(self) -> None:
        self._size = 0
        self._since: float | None = None

    def begin(self, size: int, now: float) -> None:
        """`size` bytes could not be sent at once."""
        self._size, self._since = size, now

    def end(self) -> None:
        """All were sent."""
        self._since = None

    def stalled_seconds(self, size: int, now: float) -> float:
        """Seconds since the peer last read data; 0 if nothing is pending. `size` bytes are left now.

        Any progress counts: a slow peer may take hours for a large download.
        """
        if self._since is None:
            return 0.0
        if size < self._size:
            self.begin(size, now)
        return now - self._since


class _HeadersTooLarge(Exception):
    """Raised inside the parser, which reports it as a request that it cannot read."""


class BoundedConnection(HttpToolsProtocol):
    """A connection whose headers are small and soon complete, and whose peer goes on reading.

    The parser keeps the whole of a header to itself until its end, and waits for it for ever. A transport
    waits as long for a peer to take its bytes, also after it was closed.
    """

    def __init__(self, *, max_connections: int, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self._max_connections = max_connections
        self._waiting_bytes = 0
        self._header_bytes = 0
        self._is_too_large = False
        self._timer: asyncio.TimerHandle | None = None
        self._unsent = UnsentBytes()
        self._unsent_check: asyncio.TimerHandle | None = None
        self._answered: RequestResponseCycle | None = None

    @property
    def is_reading_headers(self) -> bool:
        """No request has come yet, or not all of its headers."""
        return self._timer is not None

    @property
    def is_idle(self) -> bool:
        """No request is in progress, and all answers are sent."""
        is_waiting = self.is_reading_headers or self.timeout_keep_alive_task is not None
        return is_waiting and not self.flow.write_paused

    @property
    def stalled_seconds(self) -> float:
        """How long the peer has taken nothing of what is ready for it."""
        return self._unsent.stalled_seconds(self.transport.get_write_buffer_size(), self.loop.time())

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        # Writing pauses while anything is unsent: else the last 64 KiB would never be noticed.
        transport.set_write_buffer_limits(high=0)
        self._begin_headers()
        if len(self.connections) > self._max_connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_headers()
        self._end_unsent()
        if self._answered:
            # uvicorn ends the request that came last; with others behind it, this one would go on writing.
            self._answered.disconnected = True
            self._answered.message_event.set()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Bytes are unsent."""
        super().pause_writing()
        self._unsent.begin(self.transport.get_write_buffer_size(), self.loop.time())
        self._check_later()

    def resume_writing(self) -> None:
        """All bytes are sent."""
        self._end_unsent()
        super().resume_writing()

    def handle_websocket_upgrade(self) -> None:
        """A socket has bounds of its own, which begin with nothing unsent."""
        if self.flow.write_paused:
            self.transport.abort()
            return
        self.transport.set_write_buffer_limits()
        super().handle_websocket_upgrade()

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
        self._waiting_bytes = self._waiting_bytes + len(data) if self.is_reading_headers else 0
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

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

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

    def _check_later(self) -> None:
        self._unsent_check = self.loop.call_later(_POLL_SECONDS, self._check_unsent)

    def _check_unsent(self) -> None:
        if self.stalled_seconds >= _STALLED_SECONDS:
            self.transport.abort()
        else:
            self._check_later()

    def _end_unsent(self) -> None:
        self._unsent.end()
        if self._unsent_check:
            self._unsent_check.cancel()
        self._unsent_check = None

    def _make_room(self) -> None:
        """Closes the connection that has stalled longest, else an idle one, else this one.

        So neither stalled nor idle connections keep new ones out.
        """
        others = [
            each for each in self.connections if each is not self and isinstance(each, BoundedConnection)
        ]
        slowest = max(others, key=lambda each: each.stalled_seconds, default=self)
        if slowest.stalled_seconds < _STALLED_SECONDS_WHEN_FULL:
            slowest = next((each for each in others if each.is_idle), self)
        # `abort` and not `close`: a peer that reads nothing would keep a closing connection open.
        slowest.transport.abort()
