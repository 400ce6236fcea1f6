"""Calls of a gateway over HTTP."""

from typing import Any

import aiohttp

from tests.fakes.gateway.gateway_harness import GatewayHarness


async def call(
    harness: GatewayHarness, method: str, path: str, **more: Any
) -> tuple[int, Any, aiohttp.ClientResponse]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, harness.http + path, **more) as response,
    ):
        return response.status, await response.json(content_type=None), response
