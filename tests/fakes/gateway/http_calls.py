"""Calls of a gateway over HTTP. Each answer is compared with what the gateway describes."""

import json
from typing import Any

import aiohttp

from tests.fakes.gateway.described_answers import Answer, Description
from tests.fakes.gateway.gateway_harness import GatewayHarness


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
    """Read once of each gateway."""
    if harness.description is None:
        async with session.get(f"{harness.http}/openapi.json") as response:
            harness.description = Description(json.loads(await response.text()))
    return harness.description
