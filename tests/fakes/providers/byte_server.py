"""Servers that send any bytes, and a pool of connections to one of them."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvloop

from services.worker.engines.http.connection import Response
from services.worker.engines.http.connection_pool import ConnectionPool

SECONDS = 5.0
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n5  \r\n, two\r\n0\r\n\r\n"
CLOSE = b"close"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def on_both_loops(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Transports of uvloop, on which services run, are not those of asyncio."""

    @pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
    def tried(run: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        run(test())

    tried.__doc__ = test.__doc__
    passed: Callable[..., None] = tried
    return passed


class ByteServer:
    """Sends the next of its `answers` for each request; for an empty one it closes the connection.

    CLOSE closes it behind the answer before.
    """

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.requests: list[bytes] = []
        self.connections = 0
        self.closed = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self._answers:
                await self._take_request(reader)
                answer = self._answers.pop(0)
                if not answer:
                    break
                writer.write(answer)
                await writer.drain()
                if self._answers[:1] == [CLOSE]:
                    self._answers.pop(0)
                    break
            else:
                await reader.read()
        finally:
            self.closed += 1

    async def _take_request(self, reader: asyncio.StreamReader) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.split(b"\r\n") if line.startswith(b"Content-Length: "))
        self.requests.append(head + await reader.readexactly(int(length[16:])))


@asynccontextmanager
async def pool_of(
    serve: Serve, *, size: int = 4, tls: ssl.SSLContext | None = None
) -> AsyncIterator[ConnectionPool]:
    serving: set[asyncio.Task[None] | None] = set()

    async def serve_to_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        # The client may leave whenever it likes.
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await serve(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve_to_end, "127.0.0.1", 0, ssl=tls)
    host = "localhost" if tls else "127.0.0.1"
    address = f"{'https' if tls else 'http'}://{host}:{server.sockets[0].getsockname()[1]}"
    pool = ConnectionPool(address, {"X-Test": "yes"}, size=size, connect_timeout_seconds=SECONDS)
    try:
        yield pool
    finally:
        pool.close()
        server.close()
        await asyncio.gather(*filter(None, serving))


async def ask(pool: ConnectionPool, body: bytes = b"{}", seconds: float = SECONDS) -> tuple[int, bytes]:
    connection = pool.take_idle() or await pool.take()
    try:
        response = connection.send(pool.head("/v1/ask", len(body)), body, seconds)
        await response.begin()
        return response.status, await whole(response)
    finally:
        pool.give_back(connection)


async def whole(response: Response) -> bytes:
    read = b""
    while piece := await response.readany():
        read += piece
    return read


def plain(body: bytes, *lines: str, status: str = "200 OK") -> bytes:
    head = "\r\n".join([f"HTTP/1.1 {status}", *lines, f"Content-Length: {len(body)}"])
    return head.encode() + b"\r\n\r\n" + body
