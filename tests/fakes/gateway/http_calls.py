"""Calls of a gateway over HTTP. Each answer is compared with what the gateway describes."""

import json
from typing import Any

import aiohttp

from services.gateway.auth.session_cookies import PLAIN_COOKIE
from tests.fakes.gateway.described_answers import Answer, Description
from tests.fakes.gateway.gateway_harness import GatewayHarness

_descriptions: list[Description] = []


async def call(
    harness: GatewayHarness, method: str, path: str, **more: Any
) -> tuple[int, Any, aiohttp.ClientResponse]:
    async with aiohttp.ClientSession() as session:
        async with session.request(method, harness.http + path, **more) as response:
            body = await response.json(content_type=None)
        media_type = response.headers.get("Content-Type", "").partition(";")[0]
        answer = Answer(method, response.url.raw_path, response.status, media_type, body)
        (await _description(harness, session)).check(answer)
    return response.status, body, response


async def _description(harness: GatewayHarness, session: aiohttp.ClientSession) -> Description:
    """Read once in a process: it is made of the handlers' types, whatever the settings of a gateway are."""
    if not _descriptions:
        async with session.get(f"{harness.http}/openapi.json") as response:
            _descriptions.append(Description(json.loads(await response.text())))
    return _descriptions[0]


async def session_cookie(harness: GatewayHarness, key: str) -> str:
    """The cookie of a browser that has signed in with a key, as it sends it."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{harness.http}/sign-in",
            data={"key": key},
            headers={"Origin": harness.http},
            allow_redirects=False,
        ) as answer,
    ):
        cookies = answer.headers.getall("Set-Cookie")
        return next(each.partition(";")[0] for each in cookies if each.startswith(f"{PLAIN_COOKIE}="))
