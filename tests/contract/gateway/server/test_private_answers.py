"""No cache on the way to a caller keeps an answer that belongs to the caller."""

import aiohttp
import pytest

from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import call

API = "/api/v1/benchmarking"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/queue"),
        ("GET", f"{API}/leaderboard?suite=starter"),
        ("GET", "/api/v1/nothing"),
        ("GET", "/v1/files"),
        ("POST", f"{API}/run"),
    ],
)
async def test_answers_are_kept_by_nobody(harness: GatewayHarness, method: str, path: str) -> None:
    _, _, response = await call(harness, method, path)
    assert response.headers["Cache-Control"] == "private, no-store"


async def test_a_refused_caller_is_told_the_same() -> None:
    async with gateway_harness(api_keys={"alice": "secret-key-of-alice"}) as keyed:
        status, _, response = await call(keyed, "GET", "/api/v1/queue")
    assert (status, response.headers["Cache-Control"]) == (401, "private, no-store")


async def test_pages_and_their_assets_say_themselves_how_long_they_hold(harness: GatewayHarness) -> None:
    async with aiohttp.ClientSession(harness.http) as session:
        async with session.get("/leaderboard") as response:
            page = await response.text()
        assert response.headers["Cache-Control"] == "no-store"
        async with session.get(page[page.index("/assets/") :].partition('"')[0]) as response:
            assert "immutable" in response.headers["Cache-Control"]
