"""A server that refuses one of the two fields for the limit of an answer is sent the other one."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from proctor.values.providers.pool import MaxTokensField
from services.worker.engines import engine
from services.worker.engines.errors import RequestRefused
from services.worker.engines.http.provider_engine import HttpEngine
from services.worker.engines.http.server import Endpoint
from services.worker.engines.openai.api import OpenAIApi
from tests.fakes.providers.model_server import Fault, ModelServer, serving
from tests.fakes.worker.provider_engines import chat

MODEL = "fake-provider/fake"
SAMPLING = engine.Sampling(max_tokens=16)
QUESTION = chat("What follows? KEY=eight")


@pytest.fixture
def state() -> ModelServer:
    return ModelServer()


@pytest.fixture
async def endpoint(state: ModelServer) -> AsyncIterator[Endpoint]:
    async with serving(state) as port:
        yield Endpoint(f"http://127.0.0.1:{port}/v1", "fake-provider", timeout_seconds=5.0)


@pytest.fixture
async def openai(endpoint: Endpoint) -> AsyncIterator[HttpEngine]:
    opened = HttpEngine(OpenAIApi(), endpoint)
    yield opened
    await opened.close()


@pytest.mark.parametrize("refused", ["max_tokens", "max_completion_tokens"])
async def test_the_other_field_is_sent_once_the_server_refused_one(
    endpoint: Endpoint, state: ModelServer, refused: str
) -> None:
    """One request more, and not one more for each sample; another model of the server is asked as before."""
    openai = HttpEngine(OpenAIApi(max_tokens_field=MaxTokensField(refused)), endpoint)
    state.fault = Fault("status", 400, message=f"{refused} is not taken by this model", count=1)
    await openai.generate(MODEL, QUESTION, SAMPLING)
    await openai.generate(MODEL, QUESTION, replace(SAMPLING, is_streamed=True))
    assert state.counts["requests"] == 3
    assert refused not in state.last_request
    assert state.last_request[MaxTokensField(refused).other] == 16
    state.models = ("fake", "other")
    await openai.generate("fake-provider/other", QUESTION, SAMPLING)
    assert refused in state.last_request
    await openai.close()


async def test_a_server_that_refuses_both_fields_is_asked_twice_and_then_once(
    openai: HttpEngine, state: ModelServer
) -> None:
    state.fault = Fault("status", 400, message="max_tokens, max_completion_tokens: not supported")
    for requests in (2, 3):
        with pytest.raises(RequestRefused):
            await openai.generate(MODEL, QUESTION, SAMPLING)
        assert state.counts["requests"] == requests


@pytest.mark.parametrize(
    "message", ["max_tokens is too large: 16, at most 8", "temperature is not supported", "no"]
)
async def test_another_refusal_is_not_asked_again(
    openai: HttpEngine, state: ModelServer, message: str
) -> None:
    state.fault = Fault("status", 400, message=message)
    with pytest.raises(RequestRefused):
        await openai.generate(MODEL, QUESTION, SAMPLING)
    assert state.counts["requests"] == 1
