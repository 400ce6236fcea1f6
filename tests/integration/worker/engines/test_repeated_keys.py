"""A server that tells everything it was sent: no key and no password of it gets past the engine."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from aiohttp import web

from services.worker.engines import engine
from services.worker.engines.errors import EngineFailure
from services.worker.engines.http.provider_engine import HttpEngine
from services.worker.engines.http.server import Endpoint
from services.worker.engines.openai.api import OpenAIApi
from services.worker.engines.ports import Engine
from tests.fakes.providers.provider_server import ProviderServer, serving
from tests.fakes.worker.provider_engines import chat

KEY = "sk-" + "planted+by/a-TEST" * 12
PASSWORD = "a-password-that-was-planted"
LEFT = 180


def in_json(text: str) -> str:
    """As .NET writes it."""
    return json.dumps(text).replace("+", "\\u002B")


async def answer(request: web.Request) -> web.StreamResponse:
    """What the model's name orders: the headers in an answer, in pieces of a stream, or in an error."""
    reported = f"You sent {request.headers['Authorization']}."
    kind = (await request.json())["model"]
    if kind == "streamed":
        return await in_pieces(request, reported)
    error = f'{{"error": {{"message": {in_json("x" * LEFT + reported)}, "code": 429}}}}'
    if kind == "midway":
        return web.Response(text=f"data: {error}\n\n", content_type="text/event-stream")
    if kind.isdecimal():
        return web.Response(status=int(kind), text=error, content_type="application/json")
    choice = (
        f'{{"index": 0, "message": {{"content": {in_json(reported)}}}, "finish_reason": {in_json(reported)}}}'
    )
    return web.Response(text=f'{{"choices": [{choice}]}}', content_type="application/json")


async def in_pieces(request: web.Request, reported: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for start in range(0, len(reported), 5):
        choice = f'{{"index": 0, "delta": {{"content": {in_json(reported[start : start + 5])}}}}}'
        await response.write(f'data: {{"choices": [{choice}]}}\n\n'.encode())
    ending = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
    await response.write(ending + b"data: [DONE]\n\n")
    return response


async def models(request: web.Request) -> web.Response:
    reported = f"echo-{request.headers['Authorization']}"
    return web.json_response({"data": [{"id": reported}]})


ROUTES = (
    web.post("/chat/completions", answer),
    web.get("/models", models),
)


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async with serving(ProviderServer(), ROUTES) as address:
        yield Endpoint(address, "openai", KEY, "A_KEY", timeout_seconds=5.0)


@pytest.fixture
async def asked(endpoint: Endpoint) -> AsyncIterator[Engine]:
    made = HttpEngine(OpenAIApi(), endpoint)
    yield made
    await made.close()


@pytest.mark.parametrize("kind", ["whole", "streamed"])
async def test_answer_that_repeats_the_key_is_kept_without_it(asked: Engine, kind: str) -> None:
    sampling = engine.Sampling(max_tokens=16, is_streamed=kind == "streamed")
    response = await asked.generate(f"openai/{kind}", chat("What did I send?"), sampling)
    assert response.answer.text == "You sent Bearer ***."
    assert "planted" not in repr(response)


@pytest.mark.parametrize("kind", ["midway", "400", "401", "404", "429", "500"])
async def test_error_cut_within_the_key_leaks_nothing_of_it(asked: Engine, kind: str) -> None:
    sampling = engine.Sampling(max_tokens=16, is_streamed=kind == "midway")
    with pytest.raises(EngineFailure) as caught:
        await asked.generate(f"openai/{kind}", chat("What did I send?"), sampling)
    assert "You sent Bearer ***" in str(caught.value)
    assert "planted" not in repr(caught.value)


async def test_model_that_is_named_by_the_key_is_listed_without_it(asked: Engine) -> None:
    assert [model.model for model in await asked.list_models()] == ["openai/echo-Bearer ***"]


async def test_password_of_a_url_leaks_in_no_form(endpoint: Endpoint) -> None:
    address = endpoint.base_url.replace("://", f"://a-user:{PASSWORD}@")
    made = HttpEngine(OpenAIApi(), replace(endpoint, base_url=address, api_key=None))
    listed = await made.list_models()
    await made.close()
    assert [model.model for model in listed] == ["openai/echo-Basic ***"]
