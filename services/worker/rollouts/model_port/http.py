"""Serves the model of one rollout on the loopback of its sandbox, to those who have the rollout's token.

What a model wrote runs there and has the token too. It shares the worker's memory, files and event loop with
all other samples of the worker, so all that it can take of them has a bound.
"""

import asyncio
import hmac
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import cast

import orjson
from aiohttp import web

from proctor.values.plain import Json
from services.worker.rollouts.model_port.anthropic_messages import AnthropicMessages
from services.worker.rollouts.model_port.gemini_contents import GeminiContents
from services.worker.rollouts.model_port.model_call import CONTEXT_FULL, CallRefused, ModelAnswer, ModelCall
from services.worker.rollouts.model_port.openai_chat import OpenAIChat
from services.worker.rollouts.model_port.openai_responses import OpenAIResponses
from services.worker.rollouts.model_port.ports import Event, ModelProtocol

# A history with files and images. What is larger is refused before it is read.
_MAX_BODY_BYTES = 32 * 1024 * 1024
# The body comes from the program's own machine, so this is ample.
_BODY_SECONDS = 10.0
# Maximum number of commas and brackets of a body: each value takes memory that the text does not show.
_MAX_VALUES = 1_000_000
# Maximum number of messages of one history. A row of a data set has 2,048 at most.
_MAX_MESSAGES = 8192
# Each is an open file of the worker, which has many rollouts.
_MAX_CONNECTIONS = 16
# A refused call costs no step of the budget. Programs that look for what there is are refused a few times.
_MAX_REFUSED = 100
_PROTOCOLS: dict[str, ModelProtocol] = {
    "/v1/chat/completions": OpenAIChat(),
    "/v1/responses": OpenAIResponses(),
    "/v1/messages": AnthropicMessages(),
    "/v1beta/models/{call}": GeminiContents(),
}
_TOKEN_HEADERS = ("x-api-key", "x-goog-api-key")

Answer = Callable[[ModelCall], Awaitable[ModelAnswer]]


@asynccontextmanager
async def served_model(listening: socket.socket, token: str, answer: Answer) -> AsyncIterator[None]:
    """Serves until the block ends; calls that are in flight then are cancelled."""
    app = web.Application(client_max_size=_MAX_BODY_BYTES)
    port = _Port(token, answer)
    for path, protocol in _PROTOCOLS.items():
        app.router.add_post(path, partial(port.handle, protocol))
    app.router.add_get("/v1/models", _models)
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.1)
    try:
        await runner.setup()
        accepted = partial(_connection, cast("web.Server", runner.server))
        server = await asyncio.get_running_loop().create_server(accepted, sock=listening)
        try:
            yield
        finally:
            server.close()
    finally:
        await runner.cleanup()
        listening.close()


class _Refused(asyncio.Protocol):
    """A connection beyond the bound."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).abort()


def _connection(server: web.Server) -> asyncio.BaseProtocol:
    return _Refused() if len(server.connections) >= _MAX_CONNECTIONS else server()


async def _models(_: web.Request) -> web.Response:
    """Some programs look here before they begin; which model they name decides nothing."""
    model = {"id": "model", "object": "model", "created": 0, "owned_by": "proctor"}
    return _json({"object": "list", "data": [model]}, 200)


class _Port:
    """The calls of one rollout: one at a time is in memory, since one at a time is answered."""

    def __init__(self, token: str, answer: Answer) -> None:
        self._token = token
        self._answer = answer
        self._turn = asyncio.Lock()
        self._refused = 0

    async def handle(self, protocol: ModelProtocol, request: web.Request) -> web.Response:
        try:
            _check_token(request, self._token)
            async with self._turn:
                call, answered = await self._answered(protocol, request)
        except CallRefused as refused:
            return _json(protocol.error(refused), refused.status)
        if call.is_streamed:
            body = _stream(protocol.events(call, answered))
            return web.Response(body=body, content_type="text/event-stream")
        return _json(protocol.answer(call, answered), 200)

    async def _answered(self, protocol: ModelProtocol, request: web.Request) -> tuple[ModelCall, ModelAnswer]:
        if self._refused >= _MAX_REFUSED:
            raise CallRefused(403, f"{_MAX_REFUSED} calls of this rollout were refused, so no more are read.")
        try:
            call = await _call(protocol, request)
            return call, await self._answer(call)
        except CallRefused as refused:
            # Programs shorten a history that is too long, and ask again. The call is a step.
            self._refused += refused.code != CONTEXT_FULL
            raise


def _check_token(request: web.Request, token: str) -> None:
    """Raises CallRefused."""
    if not hmac.compare_digest(_token(request).encode(), token.encode()):
        raise CallRefused(401, "The token is not that of this rollout.", "invalid_api_key")


def _token(request: web.Request) -> str:
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    named = (request.headers.get(name, "") for name in _TOKEN_HEADERS)
    return given or next((each for each in named if each), request.query.get("key", ""))


async def _call(protocol: ModelProtocol, request: web.Request) -> ModelCall:
    """Raises CallRefused."""
    call = protocol.read(await _body(request), request.path)
    if len(call.messages) > _MAX_MESSAGES:
        raise CallRefused(400, f"The history has more than {_MAX_MESSAGES} messages.")
    return call


async def _body(request: web.Request) -> Json:
    try:
        # One body at a time is read, so one that stalls would hold all calls of its rollout.
        async with asyncio.timeout(_BODY_SECONDS):
            content = await request.read()
    except TimeoutError as error:
        raise CallRefused(408, f"The body did not arrive within {_BODY_SECONDS:g} s.") from error
    if sum(map(content.count, (b",", b"[", b"{"))) > _MAX_VALUES:
        raise CallRefused(413, "The body has too many values.")
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise CallRefused(400, "The body is not JSON.") from error
    if not isinstance(body, dict):
        raise CallRefused(400, "The body must be a JSON object.")
    return cast("Json", body)


def _stream(events: Sequence[Event]) -> bytes:
    parts = []
    for name, data in events:
        head = f"event: {name}\n".encode() if name else b""
        text = data.encode() if isinstance(data, str) else orjson.dumps(data)
        parts.append(head + b"data: " + text + b"\n\n")
    return b"".join(parts)


def _json(document: Json, status: int) -> web.Response:
    return web.Response(body=orjson.dumps(document), status=status, content_type="application/json")
