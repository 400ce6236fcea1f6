"""A service proves who it is to NATS by a credentials file, and verifies the server by its certificate."""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import nkeys
import pytest
from nacl.signing import SigningKey

from proctor.stack.servers.nats import ENVIRONMENT, prepare_nats
from proctor.stack.supervision.addresses import choose_addresses, split_address
from proctor.stack.supervision.child import ChildContext, ChildSpec, SupervisedChild
from proctor.stack.supervision.process import Program
from services.common.nats.access import NatsAccess, NatsFileUnusable
from services.common.nats.connection import NatsAway, connect_nats
from services.worker.settings import WorkerSettings
from tests.fakes.certificates import Authority, make_certificate
from tests.fakes.eventually import eventually

# Prefix bytes of nkeys, by the kind of key.
OPERATOR, ACCOUNT, USER = 14 << 3, 0, 20 << 3
SEED = 18 << 3


def key_pair(kind: int) -> nkeys.KeyPair:
    raw = bytes(SigningKey.generate())
    head = bytes([SEED | (kind >> 5), (kind & 31) << 3])
    body = head + raw
    seed = base64.b32encode(body + crc16(body).to_bytes(2, "little")).rstrip(b"=")
    return nkeys.from_seed(bytearray(seed))


def crc16(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1
        crc &= 0xFFFF
    return crc


def public(pair: nkeys.KeyPair) -> str:
    return bytes(pair.public_key).decode()


def signed(issuer: nkeys.KeyPair, subject: nkeys.KeyPair, name: str, kind: str) -> str:
    """A JWT as NATS has them (ed25519-nkey)."""
    claims: dict[str, object] = {"iss": public(issuer), "sub": public(subject), "name": name, "iat": 1}
    claims["nats"] = {"type": kind, "version": 2, **LIMITS.get(kind, {})}
    digest = hashlib.sha256(json.dumps(claims).encode()).digest()
    claims["jti"] = base64.b32encode(digest).decode().rstrip("=")
    parts = [{"typ": "JWT", "alg": "ed25519-nkey"}, claims]
    text = ".".join(encoded(json.dumps(part).encode()) for part in parts)
    return f"{text}.{encoded(issuer.sign(text.encode()))}"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


# Without them a user may subscribe to nothing.
_TRAFFIC: dict[str, object] = {"subs": -1, "data": -1, "payload": -1}
LIMITS: dict[str, dict[str, object]] = {
    "account": {"limits": {**_TRAFFIC, "imports": -1, "exports": -1, "conn": -1, "leaf": -1}},
    "user": _TRAFFIC,
}


@asynccontextmanager
async def nats_with(
    folder: Path, settings: Mapping[str, object], log: Path, address: str = ""
) -> AsyncIterator[str]:
    """A server with JWTs or TLS instead of passwords; gives host:port."""
    [address] = [address] if address else choose_addresses(1)
    program = prepare_nats(folder / "unused", address, ()).program
    host, port = split_address(address)
    config = folder / "nats.conf"
    config.write_text(json.dumps({"host": host, "port": port, **settings}))
    spec = ChildSpec("nats", Program((program, "-c", str(config)), ENVIRONMENT), partial(accepts, host, port))
    child = SupervisedChild(spec, ChildContext(log, report=print, on_change=lambda: None))
    try:
        await asyncio.wait_for(asyncio.shield(child.first_ready), 20)
        yield address
    finally:
        await child.stop()


async def accepts(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(2):
            _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def answer_to_no_user(address: str) -> bytes:
    """To a client that does not say who it is."""
    reader, writer = await asyncio.open_connection(*split_address(address))
    writer.write(b"CONNECT {}\r\nPING\r\n")
    answer = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    await writer.wait_closed()
    return answer


def access(url: str, **files: Path) -> NatsAccess:
    return NatsAccess.of(WorkerSettings.model_validate({"nats_url": url, **files}))


async def test_only_the_user_of_a_credentials_file_may_connect(tmp_path: Path) -> None:
    operator, account, user = key_pair(OPERATOR), key_pair(ACCOUNT), key_pair(USER)
    settings = {
        "operator": signed(operator, operator, "operator", "operator"),
        "resolver": "MEMORY",
        "resolver_preload": {public(account): signed(operator, account, "proctor", "account")},
    }
    credentials = tmp_path / "worker.creds"
    jwt, seed = signed(account, user, "worker", "user"), bytes(user.seed).decode()
    credentials.write_text(
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
    async with nats_with(tmp_path, settings, tmp_path / "nats.log") as address:
        connection = await connect_nats(
            access(f"nats://{address}", nats_credentials_file=credentials), "worker"
        )
        await connection.flush()
        await connection.close()
        assert b"Authorization Violation" in await answer_to_no_user(address)


async def test_server_is_verified_by_the_authorities_that_are_given(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_certificate(certificate, key)
    both = tmp_path / "both.pem"
    both.write_text(certificate.read_text() + key.read_text())
    tls = {"cert_file": str(certificate), "key_file": str(key), "ca_file": str(certificate), "verify": True}
    async with nats_with(tmp_path, {"tls": tls}, tmp_path / "nats.log") as address:
        # The first server of the list does not exist: the next one is asked.
        urls = f"tls://127.0.0.1:1, tls://{address}"
        given = access(urls, nats_ca_file=certificate, nats_certificate_file=both)
        connection = await connect_nats(given, "worker")
        await connection.flush()
        await connection.close()


@pytest.mark.parametrize(
    ("field", "setting"),
    [
        ("nats_credentials_file", "PROCTOR_NATS_CREDENTIALS_FILE"),
        ("nats_ca_file", "PROCTOR_NATS_CA_FILE"),
        ("nats_certificate_file", "PROCTOR_NATS_CERTIFICATE_FILE"),
    ],
)
async def test_missing_file_is_named_with_its_setting(tmp_path: Path, field: str, setting: str) -> None:
    missing = tmp_path / "missing.pem"
    with pytest.raises(NatsFileUnusable, match=f"{setting}: {missing} cannot be used: No such file"):
        await connect_nats(access("nats://u:SECRET@127.0.0.1:1", **{field: missing}), "worker")


async def test_server_without_tls_gets_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server in its place could otherwise ask for plain text, and read the password."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_certificate(certificate, key)
    monkeypatch.setattr("services.common.nats.connection._CONNECT_TIMEOUT_SECONDS", 2.0)
    async with nats_with(tmp_path, {}, tmp_path / "nats.log") as address:
        plain = await connect_nats(access(f"nats://{address}"), "worker")
        await plain.close()
        for given in (access(f"tls://{address}"), access(f"nats://{address}", nats_ca_file=certificate)):
            with pytest.raises(NatsAway):
                await connect_nats(given, "worker")


async def test_renewed_certificate_is_shown_when_the_connection_is_made_again(tmp_path: Path) -> None:
    """The server that comes back trusts the next authority alone."""
    first, second = Authority(tmp_path / "first"), Authority(tmp_path / "second")
    of_server, of_worker = tmp_path / "server", tmp_path / "worker"
    names = {"cert_file": "tls.crt", "key_file": "tls.key", "ca_file": "ca.crt"}
    tls = {"verify": True, **{name: str(of_server / file) for name, file in names.items()}}
    first.issue(of_server, "127.0.0.1")
    first.issue(of_worker, "worker.proctor.svc")
    [address] = choose_addresses(1)
    files = {"certificate_file": "tls.crt", "key_file": "tls.key", "ca_file": "ca.crt"}
    given = access(f"tls://{address}", **{f"nats_{name}": of_worker / file for name, file in files.items()})
    async with nats_with(tmp_path, {"tls": tls}, tmp_path / "nats.log", address):
        connection = await connect_nats(given, "worker")
        await connection.flush()
    second.issue(of_server, "127.0.0.1")
    second.issue(of_worker, "worker.proctor.svc")
    async with nats_with(tmp_path, {"tls": tls}, tmp_path / "nats.log", address):
        await eventually(lambda: connection.is_connected, "the connection is made again")
        await connection.flush()
        # While it is connected: nats-py's task that connects again may swallow its cancellation.
        await connection.close()


def test_key_without_a_certificate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NatsFileUnusable, match="PROCTOR_NATS_CERTIFICATE_FILE is empty"):
        access("tls://127.0.0.1:1", nats_key_file=tmp_path / "key").options()
