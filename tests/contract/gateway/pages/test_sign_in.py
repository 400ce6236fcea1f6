"""A browser signs in with an API key, and out again."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from services.gateway.http.paths import KEY_COOKIE
from tests.contract.gateway.pages.shown_pages import show
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness

KEY = "secret-key-of-alice"


@pytest.fixture
async def keyed() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness(api_keys={"alice": KEY}) as running:
        yield running


async def post(harness: GatewayHarness, path: str, **form: str) -> tuple[int, str, str]:
    """Status, page, and the cookie that is set."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            harness.http + path,
            data=form,
            headers={"Origin": harness.http, "Accept": "text/html"},
            allow_redirects=False,
        ) as answer,
    ):
        cookies = [each for each in answer.headers.getall("Set-Cookie", []) if each.startswith(KEY_COOKIE)]
        return answer.status, await answer.text(), "".join(cookies)


async def test_who_has_no_key_reads_what_to_do_and_a_program_how_to_send_it(keyed: GatewayHarness) -> None:
    page = await show(keyed, "/settings")
    assert ("asks for an API key" in page.html, "Bearer" in page.html) == (True, False)
    assert "Authorization: Bearer KEY" in (await show(keyed, "/settings", headers={"Accept": "*/*"})).html


async def test_right_key_opens_the_pages_and_no_script_reads_it(keyed: GatewayHarness) -> None:
    assert (await show(keyed, "/settings")).status in (303, 401)
    status, _, cookie = await post(keyed, "/sign-in", key=KEY)
    assert status == 303
    assert cookie.startswith(f"{KEY_COOKIE}={KEY};")
    assert "HttpOnly" in cookie
    page = await show(keyed, "/settings", headers={"Cookie": f"{KEY_COOKIE}={KEY}"})
    assert page.status == 200
    assert "alice" in page.html
    assert "Sign out" in page.html
    assert KEY not in page.html


@pytest.mark.parametrize(("scheme", "is_secure"), [("https", True), ("http", False)])
async def test_key_that_comes_by_tls_is_sent_back_by_tls_only(
    keyed: GatewayHarness, scheme: str, *, is_secure: bool
) -> None:
    """A proxy ends the TLS: the gateway itself sees HTTP, and the page's address in Origin."""
    origin = keyed.http.replace("http:", f"{scheme}:")
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{keyed.http}/sign-in", data={"key": KEY}, headers={"Origin": origin}, allow_redirects=False
        ) as answer,
    ):
        [cookie] = [each for each in answer.headers.getall("Set-Cookie") if each.startswith(KEY_COOKIE)]
    assert ("secure" in cookie.lower()) is is_secure


async def test_wrong_key_is_refused_in_a_sentence_and_not_kept(keyed: GatewayHarness) -> None:
    status, page, cookie = await post(keyed, "/sign-in", key="wrong")
    assert (status, cookie) == (401, "")
    assert "key" in page
    assert (await show(keyed, "/settings", headers={"Cookie": f"{KEY_COOKIE}=wrong"})).status in (303, 401)


async def test_signing_out_takes_the_key_from_the_browser(keyed: GatewayHarness) -> None:
    status, _, cookie = await post(keyed, "/sign-out")
    assert status == 303
    assert "Max-Age=0" in cookie


async def test_gateway_without_keys_offers_no_sign_out_and_keeps_no_key() -> None:
    async with gateway_harness() as running:
        assert "Sign out" not in (await show(running, "/settings")).html
        status, _, cookies = await post(running, "/sign-in", key="\N{SNOWMAN}")
        assert (status, KEY_COOKIE in cookies) == (303, False)
