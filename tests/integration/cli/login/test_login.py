"""`proctor login`: a device code at the provider, a token that is refreshed, and no other gateway gets it."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proctor.client.proctor_client import ProctorClient
from proctor.client.saved_login import token_for
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.common.grpc.caller import caller_of
from tests.contract.gateway.auth.test_oidc import oidc_settings
from tests.e2e.harness.entry_points import proctor_with
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.oidc.provider import CLIENT_ID, OidcProvider, oidc_provider


@pytest.fixture
async def provider() -> AsyncIterator[OidcProvider]:
    async with oidc_provider() as running:
        running.approves_devices = True
        yield running


@pytest.fixture
async def gateway(provider: OidcProvider) -> AsyncIterator[GatewayHarness]:
    async with gateway_harness(**oidc_settings(provider)) as running:
        yield running


@pytest.fixture
def environment(gateway: GatewayHarness, provider: OidcProvider, tmp_path: Path) -> dict[str, str]:
    return {
        "PROCTOR_GATEWAY": gateway.grpc,
        "PROCTOR_OIDC_ISSUER": provider.issuer,
        "PROCTOR_OIDC_CLIENT_ID": CLIENT_ID,
        "XDG_CONFIG_HOME": str(tmp_path),
        "PROCTOR_API_KEY": "",
    }


async def test_who_signs_in_by_a_code_calls_the_gateway_until_signing_out(
    environment: dict[str, str], gateway: GatewayHarness, tmp_path: Path
) -> None:
    assert (await proctor_with(environment, "runs")).code != 0
    done = await proctor_with(environment, "login")
    assert re.search(
        r"Open http\S+user_code=WDJB-MJHT in a browser, and confirm the code WDJB-MJHT", done.out
    )
    assert f"You are signed in at {gateway.grpc}" in done.out.replace("\n", "")
    file = tmp_path / "proctor" / "login.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert (await proctor_with(environment, "runs")).code == 0
    assert caller_of(gateway.scheduler.metadata[-1].items()).name == "ann"

    # Another gateway, whoever runs it, is not sent the token.
    async with gateway_harness() as another:
        elsewhere = {**environment, "PROCTOR_GATEWAY": another.grpc}
        assert (await proctor_with(elsewhere, "runs")).code == 0
        assert caller_of(another.scheduler.metadata[-1].items()).name == "local"

    assert "signed out" in (await proctor_with(environment, "logout")).out
    assert (await proctor_with(environment, "runs")).code != 0


async def test_a_token_that_ends_is_refreshed_until_the_provider_refuses(
    environment: dict[str, str], provider: OidcProvider, tmp_path: Path
) -> None:
    assert (await proctor_with(environment, "login")).code == 0
    file = tmp_path / "proctor" / "login.json"

    def age() -> str:
        saved = json.loads(file.read_text())
        file.write_text(json.dumps({**saved, "ends_at": time.time() + 5}))
        return str(saved["token"])

    provider.lasts_seconds = 301
    first = age()
    assert (await proctor_with(environment, "runs")).code == 0
    assert age() != first
    provider.refreshes.clear()
    refused = await proctor_with(environment, "runs")
    assert (refused.code != 0, "proctor login" in refused.err + refused.out) == (True, True)


async def test_the_token_that_is_sent_says_when_it_ends(
    environment: dict[str, str], provider: OidcProvider, tmp_path: Path
) -> None:
    # The access token lasts for a day, and the ID token for half a minute.
    provider.access_lasts_seconds, provider.lasts_seconds = 86_400, 30
    assert (await proctor_with(environment, "login")).code == 0
    file = tmp_path / "proctor" / "login.json"
    first = json.loads(file.read_text())["token"]
    provider.lasts_seconds = 300
    assert (await proctor_with(environment, "runs")).code == 0
    assert json.loads(file.read_text())["token"] != first


async def test_programs_at_a_time_refresh_a_sign_in_once(
    environment: dict[str, str], provider: OidcProvider, gateway: GatewayHarness, tmp_path: Path
) -> None:
    provider.lasts_seconds = 30
    assert (await proctor_with(environment, "login")).code == 0
    provider.lasts_seconds = 300
    file = tmp_path / "proctor" / "login.json"
    tokens = await asyncio.gather(*(asyncio.to_thread(token_for, gateway.grpc, file) for _ in range(4)))
    # Each refresh token is taken once.
    assert (len({*tokens}), tokens[0]) == (1, json.loads(file.read_text())["token"])


async def test_a_client_asks_for_the_token_of_each_call(
    gateway: GatewayHarness, provider: OidcProvider
) -> None:
    """A run is watched for longer than a token lasts."""
    tokens = [provider.token(sub=name) for name in ("first", "second", "third")]
    async with ProctorClient(gateway.grpc, api_key=lambda: tokens.pop(0)) as client:
        await client.runs.ListRuns(scheduler_pb2.ListRunsRequest())
        await client.runs.ListRuns(scheduler_pb2.ListRunsRequest())
    assert [caller_of(each.items()).name for each in gateway.scheduler.metadata] == ["second", "third"]


async def test_a_provider_of_another_name_is_refused(environment: dict[str, str]) -> None:
    named = {**environment, "PROCTOR_OIDC_ISSUER": f"{environment['PROCTOR_OIDC_ISSUER']}/"}
    refused = await proctor_with(named, "login")
    assert (refused.code != 0, "no OpenID provider of this name" in refused.err + refused.out) == (True, True)
    plain = await proctor_with({**environment, "PROCTOR_OIDC_ISSUER": "http://example.org"}, "login")
    assert (plain.code != 0, "must begin with https://" in plain.err + plain.out) == (True, True)
