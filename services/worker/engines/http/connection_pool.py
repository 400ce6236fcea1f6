"""A pool of connections to one server, and the heads of the requests that they carry."""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.metadata import version

import aiohappyeyeballs
from yarl import URL

from proctor.distribution import NAME
from services.worker.engines.http.connection import ACCEPTED_ENCODINGS, Connection

# Servers close idle connections themselves, most of them later.
_IDLE_SECONDS = 60.0
# How long the first address of a name may take before the next is tried beside it (RFC 8305).
_NEXT_ADDRESS_SECONDS = 0.25


class InvalidUrl(Exception):
    """The URL names no server that is asked by HTTP, or a header has a character that none may have."""


class ConnectionPool:
    """At most `size` connections; who asks for one more waits. Create it inside a running event loop."""

    def __init__(
        self, base_url: str, headers: Mapping[str, str], *, size: int, connect_timeout_seconds: float
    ) -> None:
        self._base_url = base_url
        self._headers = headers
        self._size = size
        self._connect_timeout_seconds = connect_timeout_seconds
        self._loop = asyncio.get_running_loop()
        # Connections that carry an exchange or are being opened.
        self.busy = 0
        self._open: set[Connection] = set()
        # The last that was used is used next, so that those that are not needed end.
        self._idle: list[Connection] = []
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closing_idle: asyncio.TimerHandle | None = None
        self._head = lru_cache(maxsize=256)(self._build_head)

    def head(self, path: str, body_bytes: int) -> bytes:
        """The head of a POST. Raises InvalidUrl."""
        return self._head(path) + b"%d\r\n\r\n" % body_bytes

    def take_idle(self) -> Connection | None:
        """None where one has to be opened or waited for."""
        connection = self._pop_idle() if self.busy < self._size else None
        if connection is not None:
            self.busy += 1
        return connection

    async def take(self) -> Connection:
        """Raises InvalidUrl, OSError, ssl.SSLError or TimeoutError."""
        await self._take_slot()
        try:
            # Whoever waited for a slot may find a connection that is open.
            return self._pop_idle() or await self._connect()
        except BaseException:
            self._free_slot()
            raise

    def give_back(self, connection: Connection) -> None:
        """Ends its exchange. It is closed where the response was not read to its end."""
        if connection.end_exchange():
            self._idle.append(connection)
            if self._closing_idle is None:
                self._closing_idle = self._loop.call_later(_IDLE_SECONDS, self._close_idle)
        else:
            self._open.discard(connection)
        self._free_slot()

    def close(self) -> None:
        """Ends the exchanges too that go on."""
        if self._closing_idle is not None:
            self._closing_idle.cancel()
        self._idle.clear()
        for connection in list(self._open):
            self._close(connection)

    def _pop_idle(self) -> Connection | None:
        oldest = self._loop.time() - _IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and connection.idle_since >= oldest:
                return connection
            self._close(connection)
        return None

    async def _take_slot(self) -> None:
        if self.busy < self._size:
            self.busy += 1
            return
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._free_slot()
            raise

    def _free_slot(self) -> None:
        """The longest waiting takes it over."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self.busy -= 1

    async def _connect(self) -> Connection:
        url = _server_of(self._base_url)
        host, port = str(url.raw_host), int(url.port or 0)
        is_secure = url.scheme == "https"
        async with asyncio.timeout(self._connect_timeout_seconds):
            opened = await self._open_socket(host, port)
            try:
                _, connection = await self._loop.create_connection(
                    lambda: Connection(self._loop),
                    sock=opened,
                    ssl=_certificates() if is_secure else None,
                    server_hostname=host if is_secure else None,
                )
            except BaseException:
                opened.close()
                raise
        self._open.add(connection)
        return connection

    async def _open_socket(self, host: str, port: int) -> socket.socket:
        try:
            addresses = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except UnicodeError as error:
            raise InvalidUrl from error
        opened = await aiohappyeyeballs.start_connection(
            addresses, happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS, interleave=1
        )
        # A request may take many minutes, in which routers forget a connection that is silent.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return opened

    def _close(self, connection: Connection) -> None:
        self._open.discard(connection)
        connection.close()

    def _close_idle(self) -> None:
        oldest = self._loop.time() - _IDLE_SECONDS
        kept = []
        for connection in self._idle:
            if connection.is_open and connection.idle_since > oldest:
                kept.append(connection)
            else:
                self._close(connection)
        self._idle = kept
        self._closing_idle = self._loop.call_later(_IDLE_SECONDS, self._close_idle) if kept else None

    def _build_head(self, path: str) -> bytes:
        url = _server_of(self._base_url + path)
        headers = {
            "Host": url.host_port_subcomponent or "",
            "User-Agent": f"{NAME}/{version(NAME)}",
            "Accept": "*/*",
            "Accept-Encoding": ACCEPTED_ENCODINGS,
            **self._headers,
        }
        lines = [f"POST {url.raw_path_qs} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        if any(mark in line for line in lines for mark in "\r\n\0"):
            raise InvalidUrl
        try:
            return ("\r\n".join(lines) + "\r\nContent-Length: ").encode()
        except UnicodeEncodeError:
            # Its cause would show the line.
            raise InvalidUrl from None


def _server_of(text: str) -> URL:
    try:
        url = URL(text)
    except ValueError as error:
        raise InvalidUrl from error
    if url.scheme not in {"http", "https"} or not url.raw_host:
        raise InvalidUrl
    return url


@cache
def _certificates() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
