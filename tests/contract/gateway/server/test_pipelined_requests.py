"""Requests that a client sends before it has the answer to the first, under the event loop of the service."""

import asyncio

import uvloop

from tests.fakes.eventually import eventually
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness

LIMIT_SECONDS = 30
RUN = "11111111-1111-4111-8111-111111111111"
EXPORT = (
    f"GET /api/v1/benchmarking/results/{RUN}/export?format=jsonl HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
)
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_request_before_others_of_its_connection_ends_when_the_client_goes() -> None:
    async def scenario() -> None:
        async with asyncio.timeout(LIMIT_SECONDS), gateway_harness(max_calls=1) as harness:
            exports = harness.results.exports
            exports.pieces, exports.is_endless = [b"{}\n"], True
            reader, writer = await connected(harness)
            writer.write(EXPORT + HEALTH + HEALTH)
            assert (await reader.readline()).split()[1] == b"200"
            assert exports.streams_open == 1
            writer.transport.abort()
            await eventually(lambda: exports.streams_open == 0, "the download is cancelled at its source")
            # Its slot is free, and the gateway goes on serving.
            exports.is_endless = False
            reader, writer = await connected(harness)
            writer.write(HEALTH + EXPORT + HEALTH)
            for _ in range(3):
                assert await status(reader) == 200
            writer.close()

    uvloop.run(scenario())


async def connected(harness: GatewayHarness) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = harness.http.removeprefix("http://").partition(":")
    return await asyncio.open_connection(host, int(port))


async def status(reader: asyncio.StreamReader) -> int:
    """The status of the next answer, which is read to its end."""
    first = await reader.readline()
    headers: dict[bytes, bytes] = {}
    while (line := (await reader.readline()).strip()) != b"":
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip()
    if b"content-length" in headers:
        await reader.readexactly(int(headers[b"content-length"]))
    else:
        # An end in mid-answer raises.
        await reader.readuntil(b"\r\n0\r\n\r\n")
    return int(first.split()[1])
