"""Requests that are not samples, against a real server: nothing leads them elsewhere, and all has a limit."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
from aiohttp import web

from services.worker.engines.http.query_client import (
    HttpQueries,
    QueryLimits,
    ResponseCutOff,
    ResponseRefused,
)

KEY = {"Authorization": "Bearer planted"}
# Longer than a machine under load takes for a small response.
LIMITS = QueryLimits(seconds=30.0, connect_seconds=30.0, max_bytes=1000)


async def small(request: web.Request) -> web.Response:
    cookies = request.headers.get("Cookie", "")
    return web.Response(text=f"small {cookies}", headers={"Set-Cookie": "name=kept; Path=/"})


async def elsewhere(_: web.Request) -> web.Response:
    raise web.HTTPFound("/small")


async def large(_: web.Request) -> web.Response:
    return web.Response(body=bytes(1001))


async def dripping(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b".")
        await asyncio.sleep(0.05)


async def compressed(_: web.Request) -> web.Response:
    return web.Response(body=gzip.compress(bytes(10_000_000)), headers={"Content-Encoding": "gzip"})


async def broken_off(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b"a part")
    assert request.transport
    request.transport.close()
    return response


HANDLERS = (small, elsewhere, large, dripping, compressed, broken_off)


@pytest.fixture
async def address() -> AsyncIterator[str]:
    app = web.Application()
    app.add_routes(web.get(f"/{handler.__name__}", handler) for handler in HANDLERS)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.fixture
async def queries() -> AsyncIterator[HttpQueries]:
    made = HttpQueries(KEY, LIMITS)
    yield made
    await made.close()


async def test_redirect_is_an_answer_and_not_followed(queries: HttpQueries, address: str) -> None:
    response = await queries.send("GET", f"{address}/elsewhere")
    assert (response.status, response.headers["location"]) == (302, "/small")


async def test_proxy_of_the_environment_is_not_used(
    queries: HttpQueries, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await queries.send("GET", f"{address}/small")).status == 200


async def test_cookies_are_not_kept(queries: HttpQueries, address: str) -> None:
    for _ in range(2):
        assert (await queries.send("GET", f"{address}/small")).body == b"small "


async def test_response_that_is_too_large_is_refused(queries: HttpQueries, address: str) -> None:
    with pytest.raises(ResponseRefused, match="more than 1,000 bytes"):
        await queries.send("GET", f"{address}/large")


async def test_response_that_is_compressed_unasked_is_refused(queries: HttpQueries, address: str) -> None:
    with pytest.raises(ResponseRefused, match="compressed"):
        await queries.send("GET", f"{address}/compressed")


async def test_response_that_never_ends_is_given_up(address: str) -> None:
    hasty = HttpQueries(KEY, replace(LIMITS, seconds=0.5))
    try:
        with pytest.raises(TimeoutError):
            await hasty.send("GET", f"{address}/dripping")
    finally:
        await hasty.close()


async def test_server_that_is_away_is_an_error_of_httpx(queries: HttpQueries) -> None:
    with pytest.raises(httpx.ConnectError):
        await queries.send("GET", "http://127.0.0.1:9/")


async def test_response_that_breaks_off_is_no_server_that_is_away(queries: HttpQueries, address: str) -> None:
    with pytest.raises(ResponseCutOff):
        await queries.send("GET", f"{address}/broken_off")
