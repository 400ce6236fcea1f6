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
    _openssl("/CN=localhost", certificate, key, "-addext", "subjectAltName=IP:127.0.0.1")


class Authority:
    """Signs certificates in the place of cert-manager."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._certificate, self._key = folder / "authority.pem", folder / "authority.key"
        _openssl("/CN=authority", self._certificate, self._key)

    def issue(self, folder: Path, *names: str) -> None:
        """tls.crt, tls.key and ca.crt, as a secret of Kubernetes has them; those that are there are replaced.

        A name is one of DNS, or an address.
        """
        folder.mkdir(parents=True, exist_ok=True)
        alternatives = ",".join(f"{'IP' if name[0].isdigit() else 'DNS'}:{name}" for name in names)
        made = {name: folder / f".{name}" for name in ("tls.crt", "tls.key", "ca.crt")}
        signed = ("-CA", str(self._certificate), "-CAkey", str(self._key))
        plain = ("-addext", "basicConstraints=critical,CA:FALSE")
        subject = ("-addext", f"subjectAltName={alternatives}")
        _openssl("/CN=service", made["tls.crt"], made["tls.key"], *subject, *plain, *signed)
        made["ca.crt"].write_bytes(self._certificate.read_bytes())
        for name, file in made.items():
            file.replace(folder / name)


def _openssl(subject: str, certificate: Path, key: Path, *options: str) -> None:
    kind = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    files = ("-keyout", str(key), "-out", str(certificate))
    command = ("openssl", "req", *kind, "-subj", subject, *options, *files)
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
