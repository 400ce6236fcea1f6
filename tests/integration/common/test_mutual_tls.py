"""Services that call each other by certificates, which are renewed while they run."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2

from services.common.errors import InvalidSetting
from services.common.grpc.backend_server import BackendServer, serve_backend
from services.common.grpc.client import open_channel
from services.common.grpc.signatures import SignedCalls
from services.common.tls.certificate_files import CertificateFiles
from tests.fakes.callers import GATEWAY
from tests.fakes.certificates import Authority
from tests.fakes.eventually import eventually

pytestmark = pytest.mark.usefixtures("authority")

SERVER, CLIENT = "localhost", "proctor-gateway.proctor.svc"
PATH = "/t.T/Call"
CALLS = SignedCalls(public=(), internal=GATEWAY)
REFUSED = grpc.StatusCode.UNAVAILABLE


@dataclass(frozen=True)
class Settings:
    """TLS settings of a service with certificates in `folder`."""

    folder: Path | None
    tls_client_names: str = ""
    health_address: str = ""

    @property
    def tls_certificate_file(self) -> Path | None:
        return self.folder and self.folder / "tls.crt"

    @property
    def tls_key_file(self) -> Path | None:
        return self.folder and self.folder / "tls.key"

    @property
    def tls_ca_file(self) -> Path | None:
        return self.folder and self.folder / "ca.crt"


class Service:
    """Answers "done" to a call; to one that says "wait" when the test says so."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    def register(self, server: grpc.aio.Server) -> None:
        async def answer(request: bytes, _: object) -> bytes:
            if request == b"wait":
                await self.go_on.wait()
            return b"done"

        handlers: dict[str, Any] = {"Call": grpc.unary_unary_rpc_method_handler(answer)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("t.T", handlers),))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Has issued certificates to a server, a client and a stranger."""
    made = Authority(tmp_path / "authority")
    made.issue(tmp_path / "server", SERVER)
    made.issue(tmp_path / "client", CLIENT)
    made.issue(tmp_path / "stranger", "another-workload.default.svc")
    return made


@asynccontextmanager
async def served(settings: Settings, service: Service | None = None) -> AsyncIterator[BackendServer]:
    apis = {"t.T": (service or Service()).register}
    server = await serve_backend(settings, "127.0.0.1:0", apis, CALLS)
    await server.set_serving(True)
    try:
        yield server
    finally:
        await server.stop(0)


@asynccontextmanager
async def caller(server: BackendServer, folder: Path | None) -> AsyncIterator[Any]:
    """A method, which its types know no bytes for."""
    tls = CertificateFiles.of(Settings(folder))
    async with open_channel(f"{SERVER}:{server.port}", tls=tls, signer=GATEWAY) as channel:
        yield channel.unary_unary(PATH)


async def code_of(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value.code()


async def test_only_peers_with_a_certificate_of_the_authority_are_answered(tmp_path: Path) -> None:
    Authority(tmp_path / "other authority").issue(tmp_path / "impostor", CLIENT)
    async with served(Settings(tmp_path / "server")) as server:
        async with caller(server, tmp_path / "client") as call:
            assert await call(b"", timeout=10) == b"done"
        async with caller(server, None) as plain:
            assert await code_of(plain(b"", timeout=10)) is REFUSED
        async with caller(server, tmp_path / "impostor") as impostor:
            assert await code_of(impostor(b"", timeout=10)) is REFUSED
        credentials = grpc.ssl_channel_credentials((tmp_path / "server" / "ca.crt").read_bytes())
        async with grpc.aio.secure_channel(f"{SERVER}:{server.port}", credentials) as nameless:
            shows_none: Any = nameless.unary_unary(PATH)
            assert await code_of(shows_none(b"", timeout=10)) is REFUSED


async def test_server_of_another_name_is_not_called(tmp_path: Path, authority: Authority) -> None:
    authority.issue(tmp_path / "server", "somewhere-else")
    async with served(Settings(tmp_path / "server")) as server, caller(server, tmp_path / "client") as call:
        assert await code_of(call(b"", timeout=10)) is REFUSED


async def test_clients_are_known_by_their_names(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "server", tls_client_names=f"another, {CLIENT}")
    async with served(settings) as server:
        async with caller(server, tmp_path / "client") as call:
            assert await call(b"", timeout=10) == b"done"
        async with caller(server, tmp_path / "stranger") as call:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call(b"", timeout=10)
            assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
            assert "another-workload.default.svc may not call t.T" in str(refused.value.details())


async def test_probes_are_answered_without_a_certificate_and_nothing_else(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "server", health_address="127.0.0.1:0")
    async with served(settings) as server:
        assert server.health_port is not None
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.health_port}") as channel:
            check: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
            answer = health_pb2.HealthCheckResponse.FromString(await check(b"", timeout=10))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
            other: Any = channel.unary_unary(PATH)
            assert await code_of(other(b"", timeout=10)) is grpc.StatusCode.UNIMPLEMENTED


async def test_renewed_certificates_are_used_without_a_restart(tmp_path: Path) -> None:
    """By another authority: what still uses the old files is refused from then on."""
    service = Service()
    async with (
        served(Settings(tmp_path / "server"), service) as server,
        caller(server, tmp_path / "client") as call,
    ):
        in_progress = asyncio.ensure_future(call(b"wait", timeout=60))
        assert await call(b"", timeout=10) == b"done"
        renewing = Authority(tmp_path / "next authority")
        renewing.issue(tmp_path / "server", SERVER)
        renewing.issue(tmp_path / "client", CLIENT)
        renewing.issue(tmp_path / "late", CLIENT)

        async def new_files_are_used() -> bool:
            async with caller(server, tmp_path / "late") as late:
                try:
                    return bool(await late(b"", timeout=10) == await call(b"", timeout=10))
                except grpc.aio.AioRpcError:
                    return False

        await eventually(new_files_are_used, "both sides use the new certificates")
        async with caller(server, tmp_path / "stranger") as old:
            assert await code_of(old(b"", timeout=10)) is REFUSED
        service.go_on.set()
        assert await asyncio.wait_for(in_progress, 10) == b"done"


async def test_files_that_do_not_fit_together_leave_what_was_used(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.common.tls.certificate_files._POLL_SECONDS", 0.0)
    files = CertificateFiles.of(Settings(tmp_path / "client"))
    assert files is not None
    before = files.current()
    # A new key beside the certificate of the old one.
    authority.issue(tmp_path / "other", CLIENT)
    (tmp_path / "other" / "tls.key").replace(tmp_path / "client" / "tls.key")
    assert files.current() is before
    authority.issue(tmp_path / "client", CLIENT)
    assert files.current() is not before


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("tls.key", "PROCTOR_TLS_KEY_FILE cannot be used: .*tls.key: No such file"),
        ("ca.crt", "PROCTOR_TLS_CA_FILE cannot be used: .*ca.crt: No such file"),
    ],
)
def test_missing_file_is_named(tmp_path: Path, missing: str, sentence: str) -> None:
    (tmp_path / "server" / missing).unlink()
    with pytest.raises(InvalidSetting, match=sentence):
        CertificateFiles.of(Settings(tmp_path / "server"))


async def test_names_of_clients_without_certificates_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="PROCTOR_TLS_CLIENT_NAMES cannot be used"):
        await serve_backend(Settings(None, tls_client_names=CLIENT), "127.0.0.1:0", {}, CALLS)
