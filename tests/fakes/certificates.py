"""Certificates for tests, and TLS in front of a server that has none."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

PIECE_BYTES = 64 * 1024


def make_certificate(certificate: Path, key: Path) -> None:
    """Signed by itself, for this machine."""
    kind = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    name = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
    command = ("openssl", "req", *kind, *name, "-keyout", str(key), "-out", str(certificate))
    subprocess.run(command, check=True, capture_output=True, timeout=60)


@asynccontextmanager
async def tls_in_front_of(address: str, folder: Path, protocols: Sequence[str]) -> AsyncIterator[str]:
    """The address of a proxy that takes TLS for a `host:port`. `folder` has ca.pem and key.pem."""
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    context.set_alpn_protocols(list(protocols))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(host, int(port))
        passing = (_pass_on(reader, inner_writer), _pass_on(inner_reader, writer))
        await asyncio.gather(*passing, return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
    finally:
        writer.close()
