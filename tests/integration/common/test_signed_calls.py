"""A service takes calls that the gateway has signed, and checks the role in them itself."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from proctor.values.names.user import Caller
from services.common.grpc.backend_server import serve_backend
from services.common.grpc.caller import caller_metadata
from services.common.grpc.client import open_channel
from services.common.grpc.signatures import LIFETIME_SECONDS, SIGNATURE, SignedCalls, Signer
from services.common.tls.certificate_files import CertificateFiles
from tests.fakes.callers import GATEWAY, OPERATOR_METADATA, SCHEDULER
from tests.fakes.certificates import Authority
from tests.integration.common.test_mutual_tls import SERVER, Settings

QUEUE, RECORD = "proctor.v1.QueueService", "proctor.v1.RunRecordService"
SCALER = "externalscaler.ExternalScaler"
GET, SET, CLOSE = f"/{QUEUE}/GetQueue", f"/{QUEUE}/SetLimits", f"/{RECORD}/CloseRun"
ASK = f"/{SCALER}/GetMetrics"
OPERATOR, BOB = OPERATOR_METADATA, caller_metadata(Caller("bob"))
CALLS = SignedCalls(public=(GATEWAY, SCHEDULER), internal=SCHEDULER, unsigned=frozenset({SCALER}))
DENIED = grpc.StatusCode.PERMISSION_DENIED


def register(server: grpc.aio.Server) -> None:
    """Answers each method with "done"."""

    async def answer(*_: object) -> bytes:
        return b"done"

    for path in (GET, SET, CLOSE, ASK):
        service, _, name = path[1:].partition("/")
        handlers: dict[str, Any] = {name: grpc.unary_unary_rpc_method_handler(answer)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))


@asynccontextmanager
async def served(settings: Settings | None = None) -> AsyncIterator[str]:
    server = await serve_backend(settings or Settings(None), "127.0.0.1:0", {"any": register}, CALLS)
    try:
        yield f"{SERVER}:{server.port}"
    finally:
        await server.stop(0)


async def code_of(
    channel: grpc.aio.Channel, path: str, metadata: Iterable[tuple[str, str | bytes]] = ()
) -> grpc.StatusCode:
    call: Any = channel.unary_unary(path)
    try:
        assert await call(b"", timeout=10, metadata=tuple(metadata)) == b"done"
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_call_is_taken_in_the_name_that_was_signed_and_in_no_other() -> None:
    """Captured metadata is of no use for another caller, role, method or time."""
    late = Signer(GATEWAY.key, now=lambda: GATEWAY.now() - LIFETIME_SECONDS - 1)
    early = Signer(GATEWAY.key, now=lambda: GATEWAY.now() + 2 * LIFETIME_SECONDS)
    signature = dict(GATEWAY.signed(SET, BOB))[SIGNATURE]
    refused = {
        "missing": OPERATOR,
        "another key": Signer(b"guessed by somebody").signed(SET, OPERATOR),
        "over": late.signed(SET, OPERATOR),
        "far ahead": early.signed(SET, OPERATOR),
        "another method": GATEWAY.signed(GET, OPERATOR),
        "a role that was added": (*OPERATOR, (SIGNATURE, signature)),
        "no operator": GATEWAY.signed(SET, BOB),
        "empty": (*OPERATOR, (SIGNATURE, b"")),
        "not binary": (*OPERATOR, (SIGNATURE.removesuffix("-bin"), "text")),
    }
    async with served() as address, open_channel(address) as channel:
        assert await code_of(channel, SET, GATEWAY.signed(SET, OPERATOR)) is grpc.StatusCode.OK
        for kind, metadata in refused.items():
            assert await code_of(channel, SET, metadata) is DENIED, kind
        assert await code_of(channel, GET, GATEWAY.signed(GET, BOB)) is grpc.StatusCode.OK


async def test_gateway_calls_no_internal_method_of_another_key() -> None:
    async with served() as address:
        async with open_channel(address, signer=GATEWAY) as gateway:
            assert await code_of(gateway, CLOSE, OPERATOR) is DENIED
        async with open_channel(address, signer=SCHEDULER) as scheduler:
            assert await code_of(scheduler, CLOSE) is grpc.StatusCode.OK


async def test_certificate_of_one_service_calls_no_other(tmp_path: Path) -> None:
    """KEDA cannot sign; its name is for the external scaler alone, with a stolen key of the gateway too."""
    authority = Authority(tmp_path / "authority")
    for component in ("server", "gateway", "keda"):
        authority.issue(tmp_path / component, SERVER if component == "server" else f"{component}.svc")
    settings = Settings(tmp_path / "server", tls_client_names=f"gateway.svc, keda.svc={SCALER}")
    async with served(settings) as address:
        tls = {name: CertificateFiles.of(Settings(tmp_path / name)) for name in ("gateway", "keda")}
        async with open_channel(address, tls=tls["keda"], signer=GATEWAY) as keda:
            assert await code_of(keda, ASK) is grpc.StatusCode.OK
            for path in (GET, SET, CLOSE):
                assert await code_of(keda, path, OPERATOR) is DENIED, path
        async with open_channel(address, tls=tls["gateway"], signer=GATEWAY) as gateway:
            assert await code_of(gateway, SET, OPERATOR) is grpc.StatusCode.OK


@pytest.mark.parametrize("name", ["änne", "a\nb", "x" * 128])
def test_any_name_can_be_signed(name: str) -> None:
    metadata = dict(GATEWAY.signed(GET, caller_metadata(Caller(name))))
    signature = metadata[SIGNATURE]
    assert isinstance(signature, bytes)
    assert GATEWAY.has_signed(GET, metadata, signature)
    assert not GATEWAY.has_signed(SET, metadata, signature)
