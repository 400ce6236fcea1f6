"""Calls of a gateway over HTTP. Each answer is compared with what the gateway describes."""

import json
from typing import Any

import aiohttp

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
