"""A balancer without stickiness: each connection goes to the next gateway that accepts it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

_CHUNK_BYTES = 64 * 1024


@dataclass
class Balancer:
    """A balancer of gateways at these addresses, each "host:port"; `url` once it listens."""

    addresses: list[str]
    url: str = ""
    _next: int = 0
    _pipes: set[asyncio.Task[None]] = field(default_factory=set)

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        chosen = await self._connected()
        if chosen is None:
            writer.close()
            return
        pair = (
            asyncio.create_task(_copy(reader, chosen[1])),
            asyncio.create_task(_copy(chosen[0], writer)),
        )
        self._pipes.update(pair)
        for pipe in pair:
            pipe.add_done_callback(self._pipes.discard)

    async def stop(self) -> None:
        pipes = list(self._pipes)
        for pipe in pipes:
            pipe.cancel()
        await asyncio.gather(*pipes, return_exceptions=True)

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for _ in self.addresses:
            address = self.addresses[self._next % len(self.addresses)]
            self._next += 1
            host, _, port = address.rpartition(":")
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(host, int(port))
        return None


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one side is gone; the other is then closed."""
    try:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(_CHUNK_BYTES):
                writer.write(data)
                await writer.drain()
    finally:
        writer.close()


@asynccontextmanager
async def balancer(addresses: list[str]) -> AsyncIterator[Balancer]:
    found = Balancer(addresses)
    server = await asyncio.start_server(found.forward, "127.0.0.1", 0)
    found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield found
    finally:
        server.close()
        await found.stop()
