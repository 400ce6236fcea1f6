"""A server of Gemini's API that tells the key it was asked with, wherever it can and in many forms."""

import json
from collections.abc import Sequence
from urllib.parse import quote

from aiohttp import web

from tests.fakes.providers import gemini_server
from tests.fakes.providers.model_server import json_response
from tests.fakes.providers.streamed_answers import gemini_chunks, server_sent, streamed


def _key(request: web.Request) -> str:
    return request.headers["x-goog-api-key"]


def _error(status: int, key: str) -> str:
    """The key is in all that it consists of, and the text goes on for longer than any reader keeps."""
    escaped = json.dumps(key)[1:-1].replace("+", "\\u002B")
    forms = f"{key} {quote(key, safe='')} {escaped} "
    message = f"I was given {forms * 9}".replace("/", "\\/")
    return f'{{"error": {{"code": {status}, "message": "{message}", "status": "{key}"}}}}'


async def generate(request: web.Request) -> web.StreamResponse:
    """The model's name orders it: `answer`, `reason`, or `error-` and `midway-` with a status."""
    key, model = _key(request), request.match_info["model"]
    kind, _, status = model.partition("-")
    if kind == "midway":
        return streamed(f"data: {_error(int(status), key)}\n\n".encode())
    if kind == "error":
        headers = {"WWW-Authenticate": key, "Location": f"/?key={key}", "Retry-After": key}
        body = _error(int(status), key)
        return web.Response(status=int(status), text=body, headers=headers, content_type="application/json")
    reason = key if kind == "reason" else "STOP"
    document = gemini_server.answer(f"I was given {key}.", finish_reason=reason)
    if request.match_info["method"] == "streamGenerateContent":
        return streamed(server_sent(gemini_chunks(document)))
    return json_response(document, headers={"X-Request-Id": key})


async def list_models(request: web.Request) -> web.StreamResponse:
    return json_response({"models": [gemini_server.listed(f"given-{_key(request)}")]})


ROUTES: Sequence[web.RouteDef] = (
    web.post(r"/models/{model:.+}:{method:generateContent|streamGenerateContent}", generate),
    web.get("/models", list_models),
)
