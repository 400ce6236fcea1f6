"""A name server of a few lines: names of tests to addresses of this machine (RFC 1035)."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

_IPV4 = 1


class NameServer(asyncio.DatagramProtocol):
    """Answers for a name with the addresses that are set for it, as a cluster does for a headless Service."""

    def __init__(self) -> None:
        self.addresses: dict[str, list[str]] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        end = data.index(b"\0", 12) + 5
        [kind] = struct.unpack("!H", data[end - 4 : end - 2])
        found = self.addresses.get(_name(data[12 : end - 4]), []) if kind == _IPV4 else []
        answers = b"".join(
            b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 0, 4) + socket.inet_aton(address) for address in found
        )
        header = data[:2] + struct.pack("!HHHHH", 0x8580, 1, len(found), 0, 0)
        self._transport.sendto(header + data[12:end] + answers, addr)


@asynccontextmanager
async def name_server() -> AsyncIterator[tuple[NameServer, int]]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(NameServer, local_addr=("127.0.0.1", 0))
    try:
        yield server, transport.get_extra_info("sockname")[1]
    finally:
        transport.close()


def _name(question: bytes) -> str:
    labels, at = [], 0
    while length := question[at]:
        labels.append(question[at + 1 : at + 1 + length].decode())
        at += 1 + length
    return ".".join(labels)
