"""Compressed answers of model servers are unpacked as they are read, within their time."""

import asyncio
import gzip
import zlib

import pytest

from services.worker.engines.http.connection import Response
from tests.fakes.eventually import counted_turns, holds
from tests.fakes.providers.byte_server import SECONDS, ByteServer, ask, on_both_loops, plain, pool_of

PACKED = b"packed " * 1000


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(PACKED)),
        ("x-gzip", gzip.compress(PACKED)),
        ("deflate", zlib.compress(PACKED)),
        ("Deflate", zlib.compress(PACKED)[2:-4]),
        ("gzip", gzip.compress(PACKED[:2100]) + gzip.compress(PACKED[2100:])),
        ("gzip", gzip.compress(PACKED) + gzip.compress(b"")),
        *((plain, PACKED) for plain in ("identity", "utf-8", "none", "")),
    ],
)
async def test_a_compressed_body_is_unpacked(encoding: str, packed: bytes) -> None:
    server = ByteServer(plain(packed, f"Content-Encoding: {encoding}"))
    async with pool_of(server.serve) as pool:
        assert await ask(pool) == (200, PACKED)


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("deflate", zlib.compress(PACKED)[2:-4]),
        ("gzip", gzip.compress(PACKED[:99]) + gzip.compress(PACKED[99:])),
    ],
)
async def test_the_first_byte_of_a_compressed_body_may_come_alone(encoding: str, packed: bytes) -> None:
    is_waiting = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\n\r\n".encode()
        writer.write(head + packed[:1])
        await is_waiting.wait()
        writer.write(packed[1:])

    async with pool_of(serve) as pool:
        asking = asyncio.create_task(ask(pool))
        await holds(lambda: not asking.done(), "a byte says nothing yet", seconds=0.1)
        is_waiting.set()
        assert await asking == (200, PACKED)


@on_both_loops
async def test_a_stream_that_unpacks_without_an_end_ends_with_its_time() -> None:
    # It arrives whole at once: only its unpacking takes long.
    bomb = gzip.compress(bytes(256 * 1024 * 1024))
    server = ByteServer(plain(bomb, "Content-Encoding: gzip"))
    async with pool_of(server.serve) as pool, counted_turns() as turns:
        connection = await pool.take()
        response = connection.send(pool.head("/", 0), b"", 0.05)
        await response.begin()
        pieces: list[int] = []
        with pytest.raises(TimeoutError):
            await read_into(pieces, response)
        pool.give_back(connection)
    assert 0 < sum(pieces) < 256 * 1024 * 1024
    # Others had their turn between its pieces.
    assert turns.count >= len(pieces)


async def read_into(pieces: list[int], response: Response) -> None:
    while piece := await response.readany():
        pieces.append(len(piece))


async def test_a_body_that_unpacks_to_a_huge_one_comes_in_pieces() -> None:
    server = ByteServer(plain(gzip.compress(bytes(64 * 1024 * 1024)), "Content-Encoding: gzip"))
    async with pool_of(server.serve) as pool:
        connection = await pool.take()
        response = connection.send(pool.head("/", 0), b"", SECONDS)
        await response.begin()
        assert len(await response.readany()) <= 1024 * 1024
        pool.give_back(connection)
