"""Connections to model servers, against servers that send any bytes; on both event loops."""

import asyncio
import gzip
import ssl
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from services.worker.engines.errors import ProviderFailed
from services.worker.engines.http import connection_pool
from services.worker.engines.http.connection import ResponseCutOff, ServerDisconnected
from services.worker.engines.http.connection_pool import ConnectionPool, InvalidUrl
from tests.fakes.eventually import eventually, holds
from tests.fakes.providers.byte_server import (
    CHUNKED,
    CLOSE,
    SECONDS,
    ByteServer,
    ask,
    on_both_loops,
    plain,
    pool_of,
    whole,
)


@on_both_loops
async def test_a_connection_serves_one_request_after_another() -> None:
    server = ByteServer(
        plain(b"one"), plain(b"", status="204 No Content"), plain(b"two", status="429 Slow down")
    )
    async with pool_of(server.serve) as pool:
        assert [await ask(pool, body) for body in (b"a", b"bb", b"ccc")] == [
            (200, b"one"), (204, b""), (429, b"two"),
        ]  # fmt: skip
    assert server.connections == 1
    assert [request.partition(b"\r\n\r\n")[2] for request in server.requests] == [b"a", b"bb", b"ccc"]
    assert server.requests[0].startswith(b"POST /v1/ask HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nX-Test: yes\r\n" in server.requests[0]


@on_both_loops
async def test_bodies_of_all_kinds_are_read() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    server = ByteServer(
        CHUNKED, b"HTTP/1.1 100 Continue\r\n\r\n" + early + plain(b"three"), b"HTTP/1.1 200 OK\n\nfour", b""
    )
    async with pool_of(server.serve) as pool:
        assert await ask(pool) == (200, b"one, two")
        assert await ask(pool) == (200, b"three")
        # It ends with the connection, which ends when more is asked.
        connection = pool.take_idle()
        assert connection is not None
        response = connection.send(pool.head("/", 0), b"", SECONDS)
        await response.begin()
        assert await response.readany() == b"four"
        assert not response.is_whole
        pool.give_back(connection)
    assert server.connections == 1


@on_both_loops
async def test_a_body_without_a_length_ends_with_its_connection() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nall of it")

    async with pool_of(serve) as pool:
        assert await ask(pool) == (200, b"all of it")
        assert await ask(pool) == (200, b"all of it")
        assert pool.take_idle() is None


async def test_a_coding_of_transfers_that_is_none_ends_with_its_connection() -> None:
    server = ByteServer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nall of it", CLOSE)
    async with pool_of(server.serve) as pool:
        assert await ask(pool) == (200, b"all of it")


async def test_headers_behind_a_body_are_not_those_of_the_next_response() -> None:
    trailers = b"Content-Encoding: gzip\r\nRetry-After: 77\r\n\r\n"
    server = ByteServer(CHUNKED[:-2] + trailers, plain(b"two"))
    async with pool_of(server.serve) as pool:
        assert await ask(pool) == (200, b"one, two")
        connection = pool.take_idle()
        assert connection is not None
        response = connection.send(pool.head("/", 0), b"", SECONDS)
        await response.begin()
        assert dict(response.headers) == {"content-length": "3"}
        assert await whole(response) == b"two"
        pool.give_back(connection)


@on_both_loops
async def test_a_connection_with_an_unread_answer_is_not_used_again() -> None:
    """Its reading is paused, so that the next answer would never come."""
    server = ByteServer(plain(bytes(3 * 1024 * 1024)), plain(b"two"))
    async with pool_of(server.serve) as pool:
        connection = await pool.take()
        response = connection.send(pool.head("/", 0), b"", SECONDS)
        await response.begin()
        pool.give_back(connection)
        assert await ask(pool) == (200, b"two")
    assert server.connections == 2


async def test_a_connection_is_not_used_again_before_its_answer_is_read() -> None:
    """A long one that came at once has paused it."""
    server = ByteServer(plain(b"short"))
    async with pool_of(server.serve) as pool:
        connection = await pool.take()
        response = connection.send(pool.head("/", 0), b"", SECONDS)
        await eventually(lambda: response.is_whole, "the answer has come")
        pool.give_back(connection)
        assert pool.take_idle() is None


@on_both_loops
async def test_a_connection_with_an_unsent_request_is_not_used_again() -> None:
    refused = plain(b"too large", status="413 Content Too Large")
    is_over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"Content-Length: 2\r\n" in head:
            writer.write(plain(b"small"))
            return
        writer.write(refused)
        await writer.drain()
        # It reads no more, and keeps the connection.
        await is_over.wait()

    async with pool_of(serve) as pool:
        assert await ask(pool, bytes(64 * 1024 * 1024)) == (413, b"too large")
        assert await ask(pool) == (200, b"small")
        is_over.set()


@on_both_loops
async def test_a_connection_that_the_server_ends_is_not_used_again() -> None:
    server = ByteServer(plain(b"one", "Connection: close"), plain(b"two"), b"", plain(b"three"))
    async with pool_of(server.serve) as pool:
        assert await ask(pool) == (200, b"one")
        assert await ask(pool) == (200, b"two")
        with pytest.raises(ServerDisconnected):
            await ask(pool)
        assert await ask(pool) == (200, b"three")
    assert server.connections == 3


@on_both_loops
async def test_an_answer_to_nothing_is_no_answer_to_the_next_request() -> None:
    server = ByteServer(plain(b"one") + plain(b"surplus"), plain(b"two"))
    async with pool_of(server.serve) as pool:
        assert await ask(pool) == (200, b"one")
        assert await ask(pool) == (200, b"two")
    assert server.connections == 2


PACKED = b"packed " * 1000


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        ((plain(gzip.compress(PACKED)[:-9], "Content-Encoding: gzip"),), ResponseCutOff),
        ((plain(b"no gzip at all", "Content-Encoding: gzip"),), ResponseCutOff),
        ((plain(b"?", "Content-Encoding: br"),), ProviderFailed),
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", CLOSE), ResponseCutOff),
        ((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnine\r\n",), ResponseCutOff),
        ((b"HTTP/1.1 200 O", CLOSE), ServerDisconnected),
        ((b"SSH-2.0-OpenSSH_9.2\r\n",), ServerDisconnected),
        ((b"HTTP/1.1 101 Other\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nxy",), ServerDisconnected),
        ((b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 100_000,), ServerDisconnected),
        ((CHUNKED[:-2] + b"X-Long: x\r\n" * 20_000,), ResponseCutOff),
        ((plain(gzip.compress(PACKED) + b"behind it", "Content-Encoding: gzip"),), ResponseCutOff),
        ((plain(b"\x1f", "Content-Encoding: gzip"),), ResponseCutOff),
    ],
)
async def test_answers_that_cannot_be_read_are_failures(
    answer: tuple[bytes, ...], failure: type[Exception]
) -> None:
    server = ByteServer(*answer, plain(b"whole"))
    async with pool_of(server.serve) as pool:
        with pytest.raises(failure):
            await ask(pool)
        assert await ask(pool) == (200, b"whole")


@on_both_loops
async def test_silence_ends_with_its_time() -> None:
    server = ByteServer(plain(b"", "X: y")[:-2], plain(b"whole")[:-1], plain(b"later"))
    async with pool_of(server.serve) as pool:
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await ask(pool, seconds=0.05)
        assert await ask(pool) == (200, b"later")
        await eventually(lambda: server.closed == 2, "both connections have ended")


@on_both_loops
async def test_a_cancelled_request_ends_its_connection() -> None:
    server = ByteServer(plain(b"never")[:-1], plain(b"next"))
    async with pool_of(server.serve, size=1) as pool:
        asking = asyncio.create_task(ask(pool))
        await eventually(lambda: bool(server.requests), "the request has arrived")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await eventually(lambda: server.closed == 1, "the connection has ended")
        assert await ask(pool) == (200, b"next")


@on_both_loops
async def test_more_requests_than_connections_wait_for_their_turn() -> None:
    server = ByteServer(*[plain(b"%d" % number) for number in range(40)])
    async with pool_of(server.serve, size=2) as pool:
        asking = [asyncio.create_task(ask(pool)) for _ in range(40)]
        # Those that leave while they wait take no turn from those behind them.
        for leaving in asking[4:10]:
            leaving.cancel()
        answers = await asyncio.gather(*asking, return_exceptions=True)
        assert pool.busy == 0
    assert sum(isinstance(answer, tuple) for answer in answers) == 34
    assert server.connections == 2


@on_both_loops
async def test_a_reader_that_is_behind_makes_the_server_wait() -> None:
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        total = 256 * 1024 * 1024
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        while sent < total:
            writer.write(bytes(1024 * 1024))
            await writer.drain()
            sent += 1024 * 1024

    async with pool_of(serve) as pool:
        connection = await pool.take()
        response = connection.send(pool.head("/", 0), b"", SECONDS)
        await response.begin()
        await eventually(lambda: response.unread_bytes > 1024 * 1024, "the reader is behind")
        await holds(lambda: sent < 64 * 1024 * 1024, "the server waits", seconds=0.5)
        read = 0
        while read < 100 * 1024 * 1024:
            read += len(await response.readany())
        pool.give_back(connection)


async def test_idle_connections_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pool, "_IDLE_SECONDS", 0.05)
    server = ByteServer(plain(b"one"), plain(b"two"))
    async with pool_of(server.serve) as pool:
        await ask(pool)
        await eventually(lambda: server.closed == 1, "the idle connection has ended")
        assert await ask(pool) == (200, b"two")


@pytest.mark.parametrize("base_url", ["ftp://host/v1", "http:///v1", "host/v1", "http://host:99999/v1"])
async def test_a_url_of_no_server_is_refused(base_url: str) -> None:
    pool = ConnectionPool(base_url, {}, size=1, connect_timeout_seconds=SECONDS)
    with pytest.raises(InvalidUrl):
        pool.head("/ask", 2)


@pytest.mark.parametrize("host", ["a" * 70 + ".b", "name.invalid"])
async def test_a_host_that_cannot_be_found_takes_no_connection(host: str) -> None:
    pool = ConnectionPool(f"http://{host}/v1", {}, size=1, connect_timeout_seconds=SECONDS)
    with pytest.raises((InvalidUrl, OSError)):
        await pool.take()
    assert pool.busy == 0


@pytest.mark.parametrize("value", ["a\r\nX-Other: b", "a\nb", "a\0", "a\udc80"])
async def test_a_header_cannot_end_its_line(value: str) -> None:
    headers = {"Authorization": value}
    pool = ConnectionPool("http://127.0.0.1:9/v1", headers, size=1, connect_timeout_seconds=SECONDS)
    with pytest.raises(InvalidUrl):
        pool.head("/ask", 2)


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(("openssl", *arguments), cwd=folder, check=True, capture_output=True)


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    """A server's, with a certificate of its own for localhost, which lies in `cert.pem`."""
    arguments = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"]
    openssl(tmp_path, *arguments, *names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    return context


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_certificates_are_checked(
    tls: ssl.SSLContext,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    trusted = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))

    async def ask_both() -> None:
        server = ByteServer(plain(b"one"), plain(b"two"))
        async with pool_of(server.serve, tls=tls) as pool:
            with pytest.raises(ssl.SSLCertVerificationError):
                await ask(pool)
            monkeypatch.setattr(connection_pool, "_certificates", lambda: trusted)
            assert [await ask(pool), await ask(pool)] == [(200, b"one"), (200, b"two")]
            assert pool.busy == 0

    run(ask_both())
