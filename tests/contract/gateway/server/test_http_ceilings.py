"""Ceilings of the HTTP server over a socket: headers and their time, connections, bodies, calls at a time."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest

from services.gateway.server import connections, middleware
from tests.fakes.eventually import eventually
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import call
from tests.fakes.thorough_cases import first_cases

KEYS = {"ann": "secret-key-of-ann"}
QUEUE = "/api/v1/queue"
CHUNKED = b"POST /v1/files HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
# More than the buffers of the system hold.
ASSETS = 12 * b"GET /docs/assets/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
RUN = b"POST /api/v1/benchmarking/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{"
UPLOAD = (
    b"POST /admin/datasets/upload?name=x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/jsonl\r\n"
    b"Content-Length: 1000\r\n\r\n{"
)


@asynccontextmanager
async def connection(
    harness: GatewayHarness, sent: bytes
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, _, port = harness.http.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    yield reader, writer
    writer.transport.abort()


@asynccontextmanager
async def silent_reader(harness: GatewayHarness, sent: bytes = ASSETS) -> AsyncIterator[socket.socket]:
    """A peer that asks for much and reads nothing by itself."""
    host, _, port = harness.http.removeprefix("http://").partition(":")
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.settimeout(0)
        await asyncio.get_running_loop().sock_connect(reader, (host, int(port)))
        await asyncio.get_running_loop().sock_sendall(reader, sent)
        yield reader


async def status(harness: GatewayHarness, sent: bytes) -> int:
    async with connection(harness, sent) as (reader, _):
        return int((await reader.readline()).split()[1])


@first_cases(
    2,
    "sent",
    [
        GET + b"X: " + b"a" * 70_000 + b"\r\n\r\n",
        GET + b"X: " + b"a" * 70_000,
        GET + b"X: a\r\n" * 20_000 + b"\r\n",
        b"GET /healthz?" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz?" + b"a" * 70_000,
        CHUNKED + b"0\r\n" + b"X: y\r\n" * 20_000,
    ],
)
async def test_headers_above_64_kib_are_refused_whole_or_not(harness: GatewayHarness, sent: bytes) -> None:
    assert await status(harness, sent) == 431


async def test_connection_goes_on_after_headers_of_usual_size(harness: GatewayHarness) -> None:
    async with connection(harness, (GET + b"X: " + b"a" * 40_000 + b"\r\n\r\n") * 3) as (reader, _):
        for _ in range(3):
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            await reader.readexactly(len(b'{"status":"ok"}'))


@pytest.mark.parametrize("sent", [b"", GET])
async def test_connection_without_whole_headers_is_closed(
    harness: GatewayHarness, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_HEADER_SECONDS", 0.05)
    async with connection(harness, sent) as (reader, _):
        assert await reader.read() == b""


async def test_idle_connections_make_room_for_new_ones() -> None:
    async with gateway_harness(max_connections=4) as small:
        idle = [connection(small, GET) for _ in range(12)]
        opened = [await each.__aenter__() for each in idle]
        for _ in range(3):
            assert (await call(small, "GET", "/healthz"))[0] == 200
        for each in idle:
            await each.__aexit__(None, None, None)
        assert len(opened) == 12


async def test_peers_that_read_nothing_make_room_for_others() -> None:
    async with gateway_harness(max_connections=4) as small, AsyncExitStack() as opened:
        for _ in range(4):
            await opened.enter_async_context(silent_reader(small))

        async def is_served() -> bool:
            try:
                return (await call(small, "GET", "/healthz"))[0] == 200
            except aiohttp.ClientError:
                return False

        await eventually(is_served, "a connection that nobody reads makes room")


async def test_connection_whose_peer_reads_nothing_is_ended(
    harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_STALLED_SECONDS", 0.2)
    monkeypatch.setattr(connections, "_POLL_SECONDS", 0.05)
    async with silent_reader(harness) as reader:

        async def is_ended() -> bool:
            try:
                # A byte into a connection that was ended is answered by a reset.
                await asyncio.get_running_loop().sock_sendall(reader, b"G")
            except ConnectionError:
                return True
            return False

        await eventually(is_ended, "the connection is ended")


async def test_download_by_a_slow_peer_that_goes_on_reading_is_whole(
    harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_STALLED_SECONDS", 2.0)
    monkeypatch.setattr(connections, "_POLL_SECONDS", 0.01)
    loop, received = asyncio.get_running_loop(), b""
    async with silent_reader(harness, b"GET /openapi.json HTTP/1.0\r\nHost: localhost\r\n\r\n") as reader:
        async with asyncio.timeout(30):
            while piece := await loop.sock_recv(reader, 2048):
                received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    assert f"content-length: {len(body)}".encode() in head.lower()


async def test_body_that_does_not_come_is_not_waited_for(
    harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(middleware, "BODY_SECONDS", 0.05)
    assert await status(harness, RUN) == 408
    assert await status(harness, UPLOAD) == 408


def form(path: str, length: int) -> bytes:
    """The headers of a form that says to have `length` bytes."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out", "/theme"])
async def test_forms_that_need_no_key_are_small_and_few_at_a_time(path: str) -> None:
    async with gateway_harness(api_keys=KEYS, max_calls=1) as small:
        assert await status(small, form("/sign-in", 16_385)) == 413
        assert await status(small, form("/theme", 16_385)) == 413
        async with connection(small, form("/sign-in", 16_384)):

            async def is_full() -> bool:
                return await status(small, form(path, 0)) == 503

            await eventually(is_full, "half a form is in progress")
            # Users have slots of their own.
            assert (await call(small, "GET", QUEUE, headers={"X-API-Key": KEYS["ann"]}))[0] == 200
        # What costs nothing is not counted, and asks the scheduler nothing.
        assert small.scheduler.queue.requests == {"ann": 1}


async def test_one_address_cannot_have_all_forms_that_need_no_key() -> None:
    async with gateway_harness(api_keys=KEYS, max_calls=4, max_calls_per_user=1) as small:
        async with connection(small, form("/sign-in", 16_384)):

            async def is_refused() -> bool:
                return await status(small, form("/theme", 0)) == 429

            await eventually(is_refused, "half a form of this address is in progress")
            assert (await call(small, "GET", QUEUE, headers={"X-API-Key": KEYS["ann"]}))[0] == 200
        # However many come, users are served.
        for _ in range(100):
            assert await status(small, form("/sign-out", 0)) in {303, 429}
        assert (await call(small, "GET", QUEUE, headers={"X-API-Key": KEYS["ann"]}))[0] == 200


async def test_one_user_cannot_have_all_requests_in_progress() -> None:
    async with gateway_harness(max_calls_per_user=1, max_calls=2) as small:
        datasets = small.scheduler.datasets
        async with connection(small, UPLOAD):
            await eventually(lambda: sum(datasets.piece_sizes) > 0, "the upload is in progress")
            refused, problem, response = await call(small, "GET", QUEUE)
            assert (refused, problem["reason"], response.headers["Retry-After"]) == (
                429,
                "TOO_MANY_CALLS",
                "1",
            )
            assert (await call(small, "GET", QUEUE, headers={"X-Proctor-User": "bob"}))[0] == 200
            assert (await call(small, "GET", "/healthz"))[0] == 200

        async def is_free() -> bool:
            return (await call(small, "GET", QUEUE))[0] == 200

        await eventually(is_free, "the broken upload gives its slot back")
