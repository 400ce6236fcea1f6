"""OpenID Connect: bearer tokens on both doors, keys that rotate, and the sign-in of browsers."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from aiohttp import WSCloseCode
from joserfc.jwk import ECKey, RSAKey
from pydantic import ValidationError

from proctor.client.errors import ClientError, NotAllowed
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import storage_service_pb2 as storage_pb2
from services.common.clock import SystemClock
from services.gateway.pages.asset_files import Assets
from services.gateway.settings import GatewaySettings
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.oidc.provider import CLIENT_ID, OidcProvider, oidc_provider

ME = "/api/v1/me"
SOCKET = f"/queue/socket?build={Assets.load().digest}"
KEYS = {"olga": "secret-key-of-olga"}


def oidc_settings(provider: OidcProvider, **more: Any) -> dict[str, Any]:
    return {
        "oidc_issuer": provider.issuer,
        "oidc_client_id": CLIENT_ID,
        "oidc_redirect_url": "http://127.0.0.1/sign-in/callback",
        "oidc_roles": {"evals": "runner", "leads": "maintainer", "ops": "operator"},
        **more,
    }


@pytest.fixture
async def provider() -> AsyncIterator[OidcProvider]:
    async with oidc_provider() as running:
        yield running


@pytest.fixture
async def gateway(provider: OidcProvider) -> AsyncIterator[GatewayHarness]:
    async with gateway_harness(**oidc_settings(provider, api_keys=KEYS)) as running:
        yield running


async def get(harness: GatewayHarness, token: str, path: str = ME) -> tuple[int, Mapping[str, Any]]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession() as session,
        session.get(harness.http + path, headers=headers) as answer,
    ):
        return answer.status, await answer.json()


async def test_the_token_of_a_user_names_the_caller_and_the_role(
    gateway: GatewayHarness, provider: OidcProvider
) -> None:
    status, me = await get(gateway, provider.token())
    assert (status, me["user"], me["role"], me["has_key"]) == (200, "ann", "runner", True)
    # The highest role of the groups counts; other groups have none.
    assert (await get(gateway, provider.token(groups=["leads", "evals", "golf"])))[1]["role"] == "maintainer"
    assert (await get(gateway, provider.token(groups="ops")))[1]["role"] == "operator"
    status, refused = await get(gateway, provider.token(groups=["golf"]))
    assert (status, "ann is in no group" in refused["detail"]) == (403, True)
    # Keys are taken beside it, and nobody without either.
    assert (await get(gateway, KEYS["olga"]))[1]["user"] == "olga"
    assert (await get(gateway, ""))[0] == 401


async def test_grpc_takes_the_same_tokens(gateway: GatewayHarness, provider: OidcProvider) -> None:
    async with ProctorClient(gateway.grpc, api_key=provider.token()) as client:
        await client.storage.GetStorage(storage_pb2.GetStorageRequest())
        with pytest.raises(NotAllowed):
            await client.queue.SetLimits(queue_pb2.SetLimitsRequest())
    async with ProctorClient(gateway.grpc, api_key=provider.token(aud="another")) as client:
        with pytest.raises(ClientError) as refused:
            await client.storage.GetStorage(storage_pb2.GetStorageRequest())
    assert refused.value.reason == "UNAUTHENTICATED"


WRONG: list[dict[str, Any]] = [
    {"aud": "another"},
    {"aud": None},
    {"iss": "http://another"},
    {"iss": None},
    {"exp": None},
    {"exp": int(time.time()) - 3600},
    {"nbf": int(time.time()) + 3600},
    {"sub": None},
    {"sub": ""},
    {"sub": "*"},
    {"sub": {"name": "olga"}},
    # Another program asked for it; a token for several has to say which.
    {"azp": "another"},
    {"aud": [CLIENT_ID, "another"]},
    {"aud": [CLIENT_ID, "another"], "azp": "another"},
]


@pytest.mark.parametrize("claims", WRONG, ids=str)
async def test_a_token_that_says_something_else_is_refused(
    gateway: GatewayHarness, provider: OidcProvider, claims: dict[str, Any]
) -> None:
    assert (await get(gateway, provider.token(**claims)))[0] == 401


async def test_a_token_for_several_is_taken_where_this_client_asked_for_it(
    gateway: GatewayHarness, provider: OidcProvider
) -> None:
    for claims in ({"azp": CLIENT_ID}, {"aud": ["another", CLIENT_ID], "azp": CLIENT_ID}):
        assert (await get(gateway, provider.token(**claims)))[0] == 200, claims


async def test_a_watch_ends_with_the_token_that_it_was_opened_with(
    gateway: GatewayHarness, provider: OidcProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.gateway.auth.oidc.tokens._LEEWAY_SECONDS", 0)
    token = provider.token(exp=int(time.time()) + 2)
    address = gateway.http.replace("http", "ws", 1) + SOCKET
    headers = {"Authorization": f"Bearer {token}", "Origin": gateway.http}
    async with aiohttp.ClientSession() as session, session.ws_connect(address, headers=headers) as socket:
        async with asyncio.timeout(20):
            while not socket.closed:
                await socket.receive()
    assert socket.close_code == WSCloseCode.POLICY_VIOLATION
    assert (await get(gateway, token))[0] == 401


async def test_only_keys_of_the_provider_sign(gateway: GatewayHarness, provider: OidcProvider) -> None:
    assert (await get(gateway, provider.token()))[0] == 200
    foreign = RSAKey.generate_key(2048, {"kid": str(provider.keys[0].kid)})
    assert (await get(gateway, provider.token(key=foreign)))[0] == 401
    header, claims, code = provider.token().split(".")
    assert (await get(gateway, f"{header}.{claims}.{code[:-8]}AAAAAAAA"))[0] == 401
    # {"alg":"none"}, and nothing signed.
    assert (await get(gateway, f"eyJhbGciOiJub25lIn0.{claims}."))[0] == 401
    assert (await get(gateway, "eyJ.x.y"))[0] == 401


async def test_keys_rotate_and_invented_ones_do_not_ask_the_provider_again_and_again(
    gateway: GatewayHarness, provider: OidcProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.gateway.auth.oidc.sign_in._ASK_AGAIN_SECONDS", 0.0)
    first = provider.token()
    assert (await get(gateway, first))[0] == 200
    provider.rotate(ECKey)
    assert (await get(gateway, provider.token()))[0] == 200
    # The earlier key signs as long as the provider shows it.
    assert (await get(gateway, first))[0] == 200
    provider.rotate()
    assert (await get(gateway, provider.token()))[0] == 200
    assert (await get(gateway, first))[0] == 401
    monkeypatch.undo()
    asked = provider.key_requests
    for _ in range(5):
        invented = RSAKey.generate_key(2048, {"kid": "invented"})
        assert (await get(gateway, provider.token(key=invented)))[0] in (401, 429)
    assert provider.key_requests <= asked + 1


async def test_a_provider_that_is_away_keeps_out_who_is_new_and_nobody_else(
    gateway: GatewayHarness, provider: OidcProvider
) -> None:
    provider.is_away = True
    status, problem = await get(gateway, provider.token())
    assert (status, "cannot be asked now" in problem["detail"]) == (503, True)
    assert (await get(gateway, KEYS["olga"]))[0] == 200
    provider.is_away = False

    async with gateway_harness(**oidc_settings(provider)) as another:
        assert (await get(another, provider.token()))[0] == 200
        provider.is_away = True
        assert (await get(another, provider.token(sub="bob")))[1]["user"] == "bob"


async def test_while_a_provider_hangs_known_keys_serve_without_waiting_for_it(
    gateway: GatewayHarness, provider: OidcProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await get(gateway, provider.token()))[0] == 200
    provider.answers.clear()
    module = "services.gateway.auth.oidc.sign_in"
    monkeypatch.setattr(f"{module}._KEYS_SECONDS", 0.0)
    monkeypatch.setattr(f"{module}._ASK_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(f"{module}._PATIENCE_SECONDS", 0.01)
    # Each would wait for a question of its own, one after the other, as long as the provider may take.
    try:
        answers = await asyncio.gather(*(get(gateway, provider.token(sub=f"ann{i}")) for i in range(5)))
        assert [status for status, _ in answers] == [200] * 5
        # All wait for one question, which is still open.
        assert provider.waiting == 1
    finally:
        provider.answers.set()


async def test_a_key_of_an_unknown_kind_spoils_no_other(provider: OidcProvider) -> None:
    provider.other_keys = [
        {"kty": "EC", "crv": "brainpoolP256r1", "kid": "new", "x": "AA", "y": "AA"},
        {"kty": "AKP", "kid": "newer", "alg": "ML-DSA-44", "pub": "AA"},
    ]
    async with gateway_harness(**oidc_settings(provider)) as harness:
        assert (await get(harness, provider.token()))[0] == 200


async def test_an_address_is_a_name_only_where_it_is_verified(provider: OidcProvider) -> None:
    settings = oidc_settings(provider, oidc_user_claim="email", oidc_default_role="viewer", oidc_roles={})
    async with gateway_harness(**settings) as harness:
        address = "ann@example.org"
        assert (await get(harness, provider.token(email=address)))[0] == 401
        assert (await get(harness, provider.token(email=address, email_verified=False)))[0] == 401
        _, me = await get(harness, provider.token(email=address, email_verified=True, groups=None))
        assert (me["user"], me["role"]) == (address, "viewer")


def pass_minutes(minutes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda clock: before(clock) + timedelta(minutes=minutes))


class Browser:
    """Follows what a browser does, and keeps cookies."""

    def __init__(self, harness: GatewayHarness, session: aiohttp.ClientSession) -> None:
        self.harness = harness
        self.session = session

    async def get(self, address: str, **headers: str) -> aiohttp.ClientResponse:
        url = address if address.startswith("http") else self.harness.http + address
        answer = await self.session.get(
            url, allow_redirects=False, headers={"Accept": "text/html", **headers}
        )
        await answer.read()
        return answer

    async def callback(self, next_address: str = "/queue?x=1") -> str:
        """The address that the provider sends the browser back to, at this gateway's port."""
        begun = await self.get(f"/sign-in/provider?next={next_address}")
        assert begun.status == 303, await begun.text()
        back = await self.get(begun.headers["Location"])
        parts = urlsplit(back.headers["Location"])
        return f"{parts.path}?{parts.query}"


@pytest.fixture
async def browser(gateway: GatewayHarness) -> AsyncIterator[Browser]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield Browser(gateway, session)


async def test_a_browser_signs_in_at_the_provider(browser: Browser) -> None:
    assert "Sign in with your organization" in await (await browser.get("/sign-in")).text()
    address = await browser.callback()
    done = await browser.get(address)
    assert (done.status, done.headers["Location"]) == (303, "/queue?x=1")
    page = await browser.get("/settings")
    assert (page.status, "You are <b>ann</b>" in await page.text()) == (200, True)
    # The code is good for one sign-in.
    assert (await browser.get(address)).status == 401
    headers = {"Origin": browser.harness.http}
    out = await browser.session.post(
        browser.harness.http + "/sign-out", headers=headers, allow_redirects=False
    )
    assert out.status == 303
    assert (await browser.get("/settings")).status == 401


async def test_cookies_of_a_sign_in_behind_tls_go_by_tls_alone(provider: OidcProvider) -> None:
    """Where a proxy ends TLS no request says so: a browser that follows a link sends no Origin."""
    behind = oidc_settings(provider, oidc_redirect_url="https://proctor.example.org/sign-in/callback")
    async with gateway_harness(**behind) as harness, aiohttp.ClientSession() as session:
        browser = Browser(harness, session)
        begun = await browser.get("/sign-in/provider")
        kept = begun.headers["Set-Cookie"]
        assert ("Secure" in kept, "HttpOnly" in kept, "Path=/sign-in/" in kept) == (True, True, True)
        back = urlsplit((await browser.get(begun.headers["Location"])).headers["Location"])
        headers = {"Cookie": kept.partition(";")[0]}
        address = f"{harness.http}{back.path}?{back.query}"
        async with session.get(address, headers=headers, allow_redirects=False) as done:
            assert done.status == 303
            cookies = {each.partition("=")[0]: each for each in done.headers.getall("Set-Cookie")}
        assert "Secure" in cookies["__Host-proctor_session"]
        assert "proctor_session" not in cookies


async def test_what_another_browser_began_signs_nobody_in(browser: Browser, gateway: GatewayHarness) -> None:
    address = await browser.callback()
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        victim = Browser(gateway, session)
        assert (await victim.get(address)).status == 401
        # Also where the victim has begun one too.
        await victim.callback()
        assert (await victim.get(address)).status == 401
        assert (await victim.get("/settings")).status == 401
    state = parse_qs(urlsplit(address).query)["state"][0]
    refused = await browser.get(f"/sign-in/callback?error=access_denied&state={state}")
    assert (refused.status, "refused this sign-in" in await refused.text()) == (401, True)


@pytest.mark.parametrize("kept", ["a.é", "é.é", "é", ".", "a.b"])
async def test_what_no_gateway_has_written_begins_nothing(gateway: GatewayHarness, kept: str) -> None:
    headers = {"Cookie": "; ".join(f"proctor_sign_in_{slot}={kept}" for slot in range(8))}
    address = f"{gateway.http}/sign-in/callback?code=c&state=s"
    async with aiohttp.ClientSession() as session, session.get(address, headers=headers) as answer:
        assert answer.status == 401


async def test_a_role_that_the_provider_takes_away_ends_with_the_half_of_a_session(
    browser: Browser, provider: OidcProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody tells the gateway: it sends browsers there again, which asks the user nothing."""
    page = "/queue?x=1"
    await browser.get(await browser.callback())
    assert (await browser.get(page)).status == 200
    pass_minutes(31, monkeypatch)
    part = {"HX-Request": "true"}
    for headers in (part, {"Accept": "application/json"}):
        assert (await browser.get(page, **headers)).status == 200
    # Two tabs go there at the same time, and both come back. Of eight such pairs one shares a cookie.
    provider.user = {**provider.user, "exp": int(time.time()) + 7200}
    gone = [await browser.get(address) for address in (page, "/settings")]
    while gone[0].cookies.keys() == gone[1].cookies.keys():
        gone = [await browser.get(address) for address in (page, "/settings")]
    for each, address in zip(gone, (page, "/settings"), strict=True):
        assert (each.status, each.headers["Location"].startswith(provider.issuer)) == (303, True)
        back = urlsplit((await browser.get(each.headers["Location"])).headers["Location"])
        done = await browser.get(f"{back.path}?{back.query}")
        assert (done.status, done.headers["Location"]) == (303, address)
    assert (await browser.get(page)).status == 200
    # The next time the user is in no group any more.
    pass_minutes(31, monkeypatch)
    provider.user = {**provider.user, "groups": []}
    gone = [await browser.get(page)]
    back = urlsplit((await browser.get(gone[0].headers["Location"])).headers["Location"])
    refused = await browser.get(f"{back.path}?{back.query}")
    assert (refused.status, "ann is in no group" in await refused.text()) == (403, True)
    # It holds to its end where the browser is kept from asking, and no longer.
    assert (await browser.get(page, **part)).status == 200
    pass_minutes(31, monkeypatch)
    assert (await browser.get(page, **part)).status == 401


async def test_a_session_goes_on_to_its_end_while_the_provider_is_away(
    browser: Browser, provider: OidcProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    await browser.get(await browser.callback())
    pass_minutes(45, monkeypatch)
    monkeypatch.setattr("services.gateway.auth.oidc.provider._KNOWN_SECONDS", -1.0)
    provider.is_away = True
    assert (await browser.get("/queue")).status == 200
    pass_minutes(16, monkeypatch)
    assert (await browser.get("/queue")).status == 401


async def test_a_browser_is_sent_to_no_other_site(browser: Browser) -> None:
    done = await browser.get(await browser.callback("//evil.example/"))
    assert done.headers["Location"] == "/"


async def test_who_has_no_role_is_told_so_and_gets_no_session(
    browser: Browser, provider: OidcProvider
) -> None:
    provider.user = {"sub": "eve", "groups": []}
    refused = await browser.get(await browser.callback())
    assert (refused.status, "eve is in no group" in await refused.text()) == (403, True)
    assert (await browser.get("/settings")).status == 401


# Discovery without a list means the header.
@pytest.mark.parametrize("methods", [[], ["client_secret_post"], ["client_secret_basic"]], ids=str)
async def test_a_client_with_a_secret_proves_it(provider: OidcProvider, methods: list[str]) -> None:
    provider.secret, provider.methods = "of: the+gateway é", methods  # of a test
    for secret, status in (("", 401), ("of: the+gateway é", 303)):
        async with (
            gateway_harness(**oidc_settings(provider, oidc_client_secret=secret)) as harness,
            aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
        ):
            browser = Browser(harness, session)
            assert (await browser.get(await browser.callback())).status == status


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"oidc_client_id": ""}, "needs PROCTOR_GATEWAY_OIDC_CLIENT_ID"),
        ({"oidc_roles": {}}, "nobody has a role"),
        ({"oidc_issuer": "http://login.example.org"}, "must begin with https://"),
        ({"oidc_redirect_url": "http://proctor.example.org/sign-in/callback"}, "must begin with https://"),
    ],
)
async def test_settings_that_would_let_nobody_in_or_show_tokens_are_refused(
    provider: OidcProvider, more: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValidationError, match=sentence):
        GatewaySettings.model_validate(oidc_settings(provider, **more))
