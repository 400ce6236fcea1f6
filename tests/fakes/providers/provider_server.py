"""The common part of the fake providers: a real server that records requests and misbehaves on demand."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from tests.fakes.providers.model_server import Fault, json_response, misbehave

Json = dict[str, Any]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

SECRET = "key-that-was-planted-by-a-test"


@dataclass(frozen=True, slots=True)
class Asked:
    path: str
    headers: Mapping[str, str]
    body: Json


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An error in the provider's own shape."""

    status: int
    document: object
    retry_after: str | None = None

    def response(self) -> web.Response:
        headers = {"Retry-After": self.retry_after} if self.retry_after else None
        return json_response(self.document, self.status, headers)


@dataclass(slots=True)
class ProviderServer:
    """The state behind the handlers. `answer` and `error` are set by a test, else it goes by rule."""

    models: tuple[str, ...] = ("fake",)
    api_key: str | None = SECRET
    answer: Json | None = None
    error: ErrorResponse | None = None
    fault: Fault | None = None
    latency_seconds: float = 0.0
    models_without_tools: tuple[str, ...] = ()
    # A server that knows no streaming ignores the request for it.
    streams: bool = True
    # The body of a streamed answer, as a test wants it.
    stream_body: bytes | None = None
    asked: list[Asked] = field(default_factory=list)
    in_flight: int = 0
    aborted: int = 0

    @property
    def last_body(self) -> Json:
        return self.asked[-1].body


SERVER = web.AppKey("SERVER", ProviderServer)


@web.middleware
async def recorded(request: web.Request, handler: Handler) -> web.StreamResponse:
    server = request.app[SERVER]
    raw = await request.read()
    server.asked.append(Asked(request.path_qs, dict(request.headers), orjson.loads(raw) if raw else {}))
    server.in_flight += 1
    try:
        await asyncio.sleep(server.latency_seconds)
        return await answered(request, handler)
    except asyncio.CancelledError:
        server.aborted += 1
        raise
    finally:
        server.in_flight -= 1


async def answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    server = request.app[SERVER]
    if server.error is not None:
        return server.error.response()
    response = await handler(request)
    if server.fault is None:
        return response
    assert isinstance(response, web.Response)
    assert isinstance(response.body, bytes)
    return await misbehave(request, server.fault, response.body, response.content_type)


@asynccontextmanager
async def serving(server: ProviderServer, routes: Sequence[web.RouteDef]) -> AsyncIterator[str]:
    """The server on a loopback port: gives its address."""
    app = web.Application(middlewares=[recorded], client_max_size=32 * 1024 * 1024)
    app[SERVER] = server
    app.add_routes(routes)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
