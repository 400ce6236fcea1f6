"""Serves the model of one rollout on the loopback of its sandbox, to those who have the rollout's token."""

import hmac
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import cast

import orjson
from aiohttp import web

from proctor.values.plain import Json
from services.worker.rollouts.model_port.anthropic_messages import AnthropicMessages
from services.worker.rollouts.model_port.errors import CallRefused
from services.worker.rollouts.model_port.gemini_contents import GeminiContents
from services.worker.rollouts.model_port.model_call import ModelAnswer, ModelCall
from services.worker.rollouts.model_port.openai_chat import OpenAIChat
from services.worker.rollouts.model_port.openai_responses import OpenAIResponses
from services.worker.rollouts.model_port.ports import Event, ModelProtocol

# A history with files and images. What is larger is refused before it is read.
_MAX_BODY_BYTES = 32 * 1024 * 1024
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
    for path, protocol in _PROTOCOLS.items():
        app.router.add_post(path, _handler(protocol, token, answer))
    app.router.add_get("/v1/models", _models)
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.1)
    try:
        await runner.setup()
        await web.SockSite(runner, listening).start()
        yield
    finally:
        await runner.cleanup()
        listening.close()


async def _models(_: web.Request) -> web.Response:
    """Some programs look here before they begin; which model they name decides nothing."""
    model = {"id": "model", "object": "model", "created": 0, "owned_by": "proctor"}
    return _json({"object": "list", "data": [model]}, 200)


def _handler(
    protocol: ModelProtocol, token: str, answer: Answer
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        try:
            _check_token(request, token)
            call = protocol.read(await _body(request), request.path)
            answered = await answer(call)
        except CallRefused as refused:
            return _json(protocol.error(refused), refused.status)
        if call.is_streamed:
            body = _stream(protocol.events(call, answered))
            return web.Response(body=body, content_type="text/event-stream")
        return _json(protocol.answer(call, answered), 200)

    return handle


def _check_token(request: web.Request, token: str) -> None:
    """Raises CallRefused."""
    if not hmac.compare_digest(_token(request).encode(), token.encode()):
        raise CallRefused(401, "The token is not that of this rollout.", "invalid_api_key")


def _token(request: web.Request) -> str:
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    named = (request.headers.get(name, "") for name in _TOKEN_HEADERS)
    return given or next((each for each in named if each), request.query.get("key", ""))


async def _body(request: web.Request) -> Json:
    try:
        body = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise CallRefused(400, "The body is no JSON.") from error
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
