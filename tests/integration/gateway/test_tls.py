"""A gateway behind TLS with an authority of its own, as the client, the command line and REST call it."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from proctor.client.errors import Unreachable
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import storage_service_pb2 as storage_pb2
from tests.fakes.certificates import make_certificate, tls_in_front_of
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.stack.command_line import CommandLine

KEY = "secret-key-of-carol"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tls")
    make_certificate(made / "ca.pem", made / "key.pem")
    return made


@pytest.fixture
async def harness() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness(api_keys={"carol": KEY}, operators=["carol"]) as running:
        yield running


@pytest.fixture
async def grpc_address(harness: GatewayHarness, folder: Path) -> AsyncIterator[str]:
    async with tls_in_front_of(harness.grpc, folder, ("h2",)) as address:
        yield f"https://{address}"


async def test_client_trusts_the_named_authority(
    grpc_address: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))
    async with ProctorClient(grpc_address, api_key=KEY) as client:
        assert (await client.queue.GetLimits(queue_pb2.GetLimitsRequest())).limits.max_running_runs == 3
        assert (await client.storage.GetStorage(storage_pb2.GetStorageRequest())).user == "carol"


async def test_certificate_of_an_unknown_authority_is_refused_in_a_sentence(
    grpc_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    async with ProctorClient(grpc_address, api_key=KEY) as client:
        with pytest.raises(Unreachable, match="is not trusted here: name the file of its authority"):
            await client.queue.GetLimits(queue_pb2.GetLimitsRequest())


async def test_command_line_calls_over_tls(
    grpc_address: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))
    monkeypatch.setenv("PROCTOR_API_KEY", KEY)
    shown = await CommandLine(grpc_address, tmp_path)("storage", "--json")
    assert (shown.code, shown.document["user"]) == (0, "carol")


async def test_command_line_does_not_send_its_key_in_plain_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_API_KEY", KEY)
    refused = await CommandLine("gateway.example:8081", tmp_path)("storage")
    assert refused.code == 2
    assert "The API key is not sent to gateway.example:8081" in " ".join(refused.err.split())
    assert KEY not in refused.err


async def test_rest_is_served_and_pages_of_the_same_origin_may_change(
    harness: GatewayHarness, folder: Path
) -> None:
    trusted = ssl.create_default_context(cafile=folder / "ca.pem")
    behind = harness.http.removeprefix("http://")
    async with tls_in_front_of(behind, folder, ("http/1.1",)) as address, aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {KEY}", "Origin": f"https://{address}"}
        async with session.get(f"https://{address}/api/v1/me", headers=headers, ssl=trusted) as response:
            assert (await response.json())["user"] == "carol"
        limits, changes = f"https://{address}/api/v1/queue/limits", {"max_running_runs": 2}
        async with session.patch(limits, headers=headers, json=changes, ssl=trusted) as response:
            assert response.status == 200
