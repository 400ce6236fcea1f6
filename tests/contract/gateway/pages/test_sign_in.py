"""A browser signs in with an API key, keeps a session in its place, and signs out again."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import aiohttp
import pytest

from services.gateway.auth import sessions
from services.gateway.auth.session_cookies import PLAIN_COOKIE, SECURE_COOKIE
from services.gateway.pages.asset_files import Assets
from tests.contract.gateway.pages.shown_pages import show
from tests.fakes.eventually import eventually
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import call, session_cookie

KEY = "secret-key-of-alice"
KEYS = {"alice": KEY, "olga": "secret-key-of-olga"}
QUEUE = "/api/v1/queue"


@pytest.fixture
async def keyed() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness(api_keys=KEYS, operators=["olga"]) as running:
        yield running


async def post(
    harness: GatewayHarness, path: str, *, cookie: str = "", scheme: str = "http", **form: str
) -> tuple[int, str, list[str]]:
    """Status, page, and the cookies of sessions that are set. A proxy ends the TLS of https."""
    origin = harness.http.replace("http:", f"{scheme}:")
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            harness.http + path,
            data=form,
            headers={"Origin": origin, "Accept": "text/html", "Cookie": cookie},
            allow_redirects=False,
        ) as answer,
    ):
        cookies = [each for each in answer.headers.getall("Set-Cookie", []) if PLAIN_COOKIE in each]
        return answer.status, await answer.text(), cookies


async def status_of(harness: GatewayHarness, cookie: str) -> int:
    return (await call(harness, "GET", QUEUE, headers={"Cookie": cookie}))[0]


async def test_who_has_no_key_reads_what_to_do_and_a_program_how_to_send_it(keyed: GatewayHarness) -> None:
    page = await show(keyed, "/settings")
    assert ("asks for an API key" in page.html, "Bearer" in page.html) == (True, False)
    assert "Authorization: Bearer KEY" in (await show(keyed, "/settings", headers={"Accept": "*/*"})).html


async def test_right_key_begins_a_session_and_no_browser_keeps_the_key(keyed: GatewayHarness) -> None:
    assert (await show(keyed, "/settings")).status in (303, 401)
    status, _, [cookie] = await post(keyed, "/sign-in", key=KEY)
    assert status == 303
    assert cookie.startswith(f"{PLAIN_COOKIE}=")
    assert KEY not in cookie
    assert "HttpOnly" in cookie
    page = await show(keyed, "/settings", headers={"Cookie": cookie.partition(";")[0]})
    assert page.status == 200
    assert "alice" in page.html
    assert "Sign out" in page.html
    assert KEY not in page.html


async def test_session_of_tls_is_of_this_host_and_sent_by_tls_only(keyed: GatewayHarness) -> None:
    _, _, [cookie] = await post(keyed, "/sign-in", scheme="https", key=KEY)
    assert cookie.startswith(f"{SECURE_COOKIE}=")
    assert {"Secure", "Path=/"} <= set(cookie.split("; "))
    assert "Domain" not in cookie
    _, _, [plain] = await post(keyed, "/sign-in", key=KEY)
    assert "Secure" not in plain


async def test_session_is_no_key_for_programs_and_no_door_but_pages_and_reads(keyed: GatewayHarness) -> None:
    cookie = await session_cookie(keyed, KEY)
    text = cookie.partition("=")[2]
    assert await status_of(keyed, cookie) == 200
    assert (await call(keyed, "GET", QUEUE, headers={"X-API-Key": text}))[0] == 401
    change = f"{QUEUE}/limits"
    headers = {"Cookie": await session_cookie(keyed, KEYS["olga"])}
    assert (await call(keyed, "PATCH", change, json={"max_running_runs": 2}, headers=headers))[0] == 401


@pytest.mark.parametrize("changed", ["begin", "middle", "end", "none", "long"])
async def test_text_that_no_gateway_wrote_is_refused(keyed: GatewayHarness, changed: str) -> None:
    cookie = await session_cookie(keyed, KEY)
    name, _, text = cookie.partition("=")
    forged = {
        "begin": "A" + text[1:],
        "middle": text.replace(".", "A."),
        "end": text[:-4],
        "none": ".",
        "long": text * 30,
    }[changed]
    assert await status_of(keyed, f"{name}={forged}") == 401
    assert await status_of(keyed, cookie) == 200


async def test_wrong_key_is_refused_in_a_sentence_and_begins_nothing(keyed: GatewayHarness) -> None:
    status, page, cookies = await post(keyed, "/sign-in", key="wrong")
    assert (status, cookies) == (401, [])
    assert "key" in page


async def test_sessions_are_begun_no_more_often_than_a_user_may_change_something(
    keyed: GatewayHarness,
) -> None:
    keyed.scheduler.queue.max_requests = 1
    assert (await post(keyed, "/sign-in", key=KEY))[0] == 303
    status, page, cookies = await post(keyed, "/sign-in", key=KEY)
    assert (status, cookies) == (429, [])
    assert "alice" in page
    # Who may raise the limit gets in.
    assert [(await post(keyed, "/sign-in", key=KEYS["olga"]))[0] for _ in range(2)] == [303, 303]


async def test_signing_out_ends_the_session_and_no_other_one(keyed: GatewayHarness) -> None:
    mine, other = await session_cookie(keyed, KEY), await session_cookie(keyed, KEY)
    status, _, cookies = await post(keyed, "/sign-out", cookie=mine)
    assert status == 303
    assert len([each for each in cookies if "Max-Age=0" in each]) == 2
    assert (await status_of(keyed, mine), await status_of(keyed, other)) == (401, 200)
    assert len(keyed.scheduler.keys.sessions) == 1
    # Without a session, and with one that has ended, there is nothing to end.
    assert (await post(keyed, "/sign-out"))[0] == (await post(keyed, "/sign-out", cookie=mine))[0] == 303
    assert len(keyed.scheduler.keys.sessions) == 1


async def test_other_replicas_hear_of_ended_sessions(keyed: GatewayHarness) -> None:
    assert keyed.scheduler_server
    async with gateway_harness(
        api_keys=KEYS, scheduler_address=f"127.0.0.1:{keyed.scheduler_server.port}"
    ) as other:
        cookie = await session_cookie(other, KEY)
        assert await status_of(keyed, cookie) == await status_of(other, cookie) == 200
        await post(keyed, "/sign-out", cookie=cookie)

        async def is_refused() -> bool:
            return await status_of(other, cookie) == 401

        await eventually(is_refused, "the session that ended elsewhere is refused")


async def test_session_ends_with_its_key_and_takes_open_pages_along(keyed: GatewayHarness) -> None:
    root = {"X-API-Key": KEYS["olga"]}
    made = (await call(keyed, "POST", "/api/v1/keys", json={"user": "ann"}, headers=root))[1]
    cookie = await session_cookie(keyed, made["secret"])
    assert (await show(keyed, "/settings", headers={"Cookie": cookie})).status == 200
    address = f"{keyed.http}/queue/socket?build={Assets.load().digest}"
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(address, headers={"Cookie": cookie, "Origin": keyed.http}) as socket,
    ):
        await call(keyed, "DELETE", f"/api/v1/keys/{made['key']['key_id']}", headers=root)
        async with asyncio.timeout(30):
            while not socket.closed:
                await socket.receive()
    assert socket.close_code == aiohttp.WSCloseCode.POLICY_VIOLATION
    assert await status_of(keyed, cookie) == 401


async def test_session_is_renewed_while_it_is_used_and_over_when_it_is_not(
    keyed: GatewayHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    cookie = await session_cookie(keyed, KEY)
    assert "Set-Cookie" not in (await call(keyed, "GET", QUEUE, headers={"Cookie": cookie}))[2].headers
    monkeypatch.setattr(sessions, "_RENEWED_AFTER", timedelta(0))
    renewed = (await call(keyed, "GET", QUEUE, headers={"Cookie": cookie}))[2].headers["Set-Cookie"]
    assert renewed.startswith(f"{PLAIN_COOKIE}=")
    assert await status_of(keyed, renewed.partition(";")[0]) == 200
    monkeypatch.setattr(sessions, "LIFETIME", timedelta(0))
    status, problem, _ = await call(keyed, "GET", QUEUE, headers={"Cookie": cookie})
    assert (status, "session is over" in problem["detail"]) == (401, True)


async def test_session_lasts_no_longer_than_the_longest(
    keyed: GatewayHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    cookie = await session_cookie(keyed, KEY)
    monkeypatch.setattr(sessions, "LONGEST", timedelta(0))
    assert await status_of(keyed, cookie) == 401


async def test_gateway_without_keys_offers_no_sign_out_and_keeps_no_session(keyed: GatewayHarness) -> None:
    foreign = await session_cookie(keyed, KEY)
    async with gateway_harness() as running:
        assert "Sign out" not in (await show(running, "/settings")).html
        status, _, cookies = await post(running, "/sign-in", key="\N{SNOWMAN}")
        assert (status, cookies) == (303, [])
        # Stacks at other ports of this host have the same cookies.
        assert await status_of(running, foreign) == 200
        assert await status_of(running, f"{PLAIN_COOKIE}=x") == 200
