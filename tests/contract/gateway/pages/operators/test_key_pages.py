"""The page of API keys: operators make, replace and revoke them; the whole key is shown once."""

import re
from collections.abc import AsyncIterator

import aiohttp
import pytest

from services.common.api_keys import id_of_key
from tests.contract.gateway.pages.shown_pages import HOSTILE, show
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness

KEYS = {"ann": "secret-key-of-ann", "olga": "secret-key-of-olga"}
PAGE = "/settings/keys"


@pytest.fixture
async def keyed() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness(api_keys=KEYS, operators=["olga"]) as running:
        yield running


async def post(harness: GatewayHarness, path: str, by: str = "olga", **form: str) -> tuple[int, str]:
    headers = {"Origin": harness.http, "Accept": "text/html", "X-API-Key": KEYS[by]}
    async with (
        aiohttp.ClientSession() as session,
        session.post(harness.http + path, data=form, headers=headers, allow_redirects=False) as answer,
    ):
        return answer.status, await answer.text()


def whole_keys(html: str) -> list[str]:
    return [text for text in re.findall(r"proctor_\w+", html) if id_of_key(text)]


async def page(harness: GatewayHarness, path: str = PAGE) -> str:
    return (await show(harness, path, headers={"X-API-Key": KEYS["olga"]})).html


async def test_key_is_made_replaced_and_revoked_on_the_page(keyed: GatewayHarness) -> None:
    assert "No key yet." in await page(keyed)
    status, html = await post(keyed, PAGE, user="ann", role="viewer", days="7", note="notebook")
    [first] = whole_keys(html)
    assert status == 201
    listed = await page(keyed)
    assert (whole_keys(listed), "notebook" in listed) == ([], True)
    # A column of buttons has a name, too, which readers of the screen say.
    assert '<th scope="col"></th>' not in listed

    key_id = id_of_key(first)
    _, html = await post(keyed, f"{PAGE}/{key_id}/rotate")
    [second] = whole_keys(html)
    assert id_of_key(second) != key_id
    asked = await page(keyed, f"{PAGE}?ask={key_id}")
    assert f'action="{PAGE}/{key_id}/revoke"' in asked
    assert f'action="{PAGE}/{key_id}/revoke"' not in listed
    assert (await post(keyed, f"{PAGE}/{key_id}/revoke"))[0] == 303
    assert ">revoked<" in await page(keyed)
    assert f'action="{PAGE}/{key_id}/revoke"' not in await page(keyed, f"{PAGE}?ask={key_id}")


async def test_fault_stands_beside_its_field_and_what_was_entered_stays(keyed: GatewayHarness) -> None:
    status, html = await post(keyed, PAGE, user="bob", days="4000", note="kept")
    assert status == 422
    assert "At most 1825." in html
    assert 'value="kept"' in html
    status, html = await post(keyed, PAGE, user="*")
    assert (status, "printable characters" in html) == (422, True)
    assert not keyed.scheduler.keys.keys


async def test_text_of_a_key_is_no_markup(keyed: GatewayHarness) -> None:
    await post(keyed, PAGE, user="bob", note=HOSTILE.replace("\u202e", ""))
    html = await page(keyed)
    assert "onerror" in html
    assert "<img src=x" not in html


async def test_page_is_of_operators(keyed: GatewayHarness) -> None:
    assert (await show(keyed, PAGE, headers={"X-API-Key": KEYS["ann"]})).status == 403
    assert (await post(keyed, PAGE, "ann", role="operator", note="mine"))[0] == 403
    assert PAGE in await page(keyed, "/settings")
    assert PAGE not in (await show(keyed, "/settings", headers={"X-API-Key": KEYS["ann"]})).html
