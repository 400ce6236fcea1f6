"""Rows of data sets at the engines over HTTP: what the protocol carries, and what others take."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from proctor.values.sample import ChatMessage, Prompt
from services.worker.engines import engine
from services.worker.engines.errors import RequestRefused
from services.worker.engines.http.provider_engine import HttpEngine
from services.worker.engines.http.server import Endpoint
from services.worker.engines.openai.api import OPENAI, OpenAIApi
from services.worker.engines.row_params import apply_row_params, read_row_params
from tests.fakes.providers import ollama_server
from tests.fakes.providers.model_server import ModelServer, chat_answer, serving
from tests.fakes.worker.provider_engines import (
    ANTHROPIC,
    GEMINI,
    OLLAMA,
    Native,
    NativeStand,
    chat,
    native_stand,
)

MODEL = "fake-provider/fake"
SECRET = "sk-secret-of-the-test"
OPEN = engine.Sampling(max_tokens=None, temperature=None, is_row=True)
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
IMAGE = [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": "data:…"}}]


def asking(**params: Any) -> engine.Sampling:
    read = read_row_params(json.dumps(params))
    if read.refusal:
        raise RequestRefused(read.refusal)
    return apply_row_params(read, OPEN, 0)


def with_fields(content: str, fields: dict[str, Any]) -> Prompt:
    return Prompt(messages=(ChatMessage("user", content, json.dumps(fields)),))


def answered(**message: Any) -> dict[str, Any]:
    """What the fake says, with more in its message."""
    answer = chat_answer({"model": "fake", "messages": [{"content": "KEY=seven"}]})
    answer["choices"][0]["message"] |= message
    return answer


@pytest.fixture
async def server() -> AsyncIterator[tuple[ModelServer, HttpEngine]]:
    state = ModelServer(api_key=SECRET)
    async with serving(state) as port:
        endpoint = Endpoint(f"http://127.0.0.1:{port}/v1", "fake-provider", SECRET, timeout_seconds=5.0)
        asked = HttpEngine(OpenAIApi(), endpoint)
        yield state, asked
        await asked.close()


@pytest.fixture
def state(server: tuple[ModelServer, HttpEngine]) -> ModelServer:
    return server[0]


@pytest.fixture
def openai(server: tuple[ModelServer, HttpEngine]) -> HttpEngine:
    return server[1]


@pytest.fixture(params=[OLLAMA, GEMINI, ANTHROPIC], ids=lambda native: native.name)
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[NativeStand]:
    native: Native = request.param
    async with native_stand(native) as made:
        yield made


async def test_only_the_rows_parameters_are_sent(openai: HttpEngine, state: ModelServer) -> None:
    await openai.generate(MODEL, chat("KEY=seven"), OPEN)
    assert state.last_request == {"model": "fake", "messages": [{"role": "user", "content": "KEY=seven"}]}


async def test_row_reaches_the_server_as_it_is(openai: HttpEngine, state: ModelServer) -> None:
    state.answer = answered()
    given = {"n": 2, "tools": TOOLS, "user": "u", "guided_choice": ["a"], "temperature": 0, "stop": ["a"]}
    prompt = with_fields("What?", {"content": IMAGE, "name": "Ann"})
    await openai.generate(MODEL, prompt, asking(**given, max_tokens=4))
    messages = [{"role": "user", "content": IMAGE, "name": "Ann"}]
    assert state.last_request == {"model": "fake", "messages": messages, "max_tokens": 4, **given}


async def test_a_row_is_limited_by_the_field_that_it_writes(openai: HttpEngine, state: ModelServer) -> None:
    await openai.generate(MODEL, chat("KEY=seven"), asking(max_completion_tokens=4))
    limits = {name: value for name, value in state.last_request.items() if name.startswith("max_")}
    assert limits == {"max_completion_tokens": 4}
    await openai.generate(MODEL, Prompt("KEY=seven"), asking(max_completion_tokens=4))
    assert state.last_request["max_tokens"] == 4


async def test_limit_has_the_name_that_the_server_takes(openai: HttpEngine, state: ModelServer) -> None:
    endpoint = openai._endpoint
    strict = HttpEngine(OpenAIApi(server=OPENAI), endpoint)
    await strict.generate(MODEL, chat("KEY=seven"), asking(max_tokens=4))
    assert state.last_request["max_completion_tokens"] == 4
    assert "max_tokens" not in state.last_request
    with pytest.raises(RequestRefused, match="OpenAI takes no top_k; leave it out of the line"):
        await strict.generate(MODEL, chat("KEY=seven"), asking(top_k=4))
    await strict.close()


async def test_answer_that_is_one_text_is_kept_as_a_text(openai: HttpEngine) -> None:
    response = await openai.generate(MODEL, chat("KEY=seven"), OPEN)
    assert (response.answer.text, response.answer.body_json) == ("The answer is seven.", "")


@pytest.mark.parametrize(
    "message",
    [
        {"tool_calls": [CALL]},
        {"refusal": "No."},
        {"reasoning_details": [{"data": "x"}]},
        {"audio": {"id": "a"}},
    ],
)
async def test_answer_with_more_than_text_is_kept_whole(
    openai: HttpEngine, state: ModelServer, message: dict[str, Any]
) -> None:
    state.answer = answered(**message)
    response = await openai.generate(MODEL, chat("KEY=seven"), OPEN)
    assert response.answer.text == "The answer is seven."
    assert json.loads(response.answer.body_json) == state.answer
    suite = await openai.generate(MODEL, chat("KEY=seven"), engine.Sampling(max_tokens=8))
    assert suite.answer.body_json == ""


async def test_reasoning_of_a_text_is_kept_beside_it(openai: HttpEngine, state: ModelServer) -> None:
    state.answer = answered(reasoning_content="Hm.")
    for sampling in (OPEN, engine.Sampling(max_tokens=8)):
        answer = (await openai.generate(MODEL, chat("KEY=seven"), sampling)).answer
        assert (answer.text, answer.reasoning, answer.body_json) == ("The answer is seven.", "Hm.", "")


async def test_several_choices_and_log_probabilities_are_kept_whole(
    openai: HttpEngine, state: ModelServer
) -> None:
    state.answer = answered()
    state.answer["choices"] *= 2
    assert json.loads((await openai.generate(MODEL, chat("?"), asking(n=2))).answer.body_json) == state.answer
    state.answer = answered()
    state.answer["choices"][0]["logprobs"] = {"content": []}
    assert json.loads((await openai.generate(MODEL, chat("?"), asking(logprobs=True))).answer.body_json)


async def test_key_that_the_server_repeats_is_in_no_body(openai: HttpEngine, state: ModelServer) -> None:
    state.answer = answered(reasoning_content=f"I was given {SECRET}.", refusal="No.")
    answer = (await openai.generate(MODEL, chat("?"), OPEN)).answer
    for said in (answer.body_json, answer.reasoning):
        assert "I was given" in said
        assert SECRET not in said


async def test_what_cannot_be_streamed_as_a_text_is_asked_unstreamed(
    openai: HttpEngine, state: ModelServer
) -> None:
    await openai.generate(MODEL, chat("KEY=seven"), replace(asking(n=1), is_streamed=True))
    assert state.last_request["stream"] is True
    for params in ({"n": 2}, {"tools": TOOLS}, {"logprobs": True}):
        await openai.generate(MODEL, chat("KEY=seven"), replace(asking(**params), is_streamed=True))
        assert "stream" not in state.last_request


async def test_what_is_of_no_account_is_left_out_elsewhere(harness: NativeStand) -> None:
    await harness.ask(sampling=OPEN)
    plain = harness.server.last_body
    await harness.ask(sampling=asking(user="u", metadata={"a": "b"}, n=1, logprobs=False, store=False))
    assert harness.server.last_body == plain


async def test_what_a_provider_cannot_do_is_refused_by_name(harness: NativeStand) -> None:
    refused = {"n": 2, "functions": TOOLS, "logprobs": True, "logit_bias": {"5": 1}, "guided_choice": ["a"]}
    for name, value in refused.items():
        with pytest.raises(RequestRefused, match=f"takes no {name} here"):
            await harness.ask(sampling=asking(**{name: value}))
    assert not harness.server.asked


async def test_image_is_refused_where_only_text_goes(harness: NativeStand) -> None:
    with pytest.raises(RequestRefused, match="Message 1 of the line holds an image"):
        await harness.asked.generate(harness.model, with_fields("What?", {"content": IMAGE}), OPEN)
    parts = [{"type": "text", "text": "KEY=seven"}]
    await harness.asked.generate(harness.model, with_fields("KEY=seven", {"content": parts}), OPEN)
    assert "KEY=seven" in json.dumps(harness.server.last_body)


async def test_ollama_gets_the_format_and_its_own_options() -> None:
    async with native_stand(OLLAMA) as harness:
        harness.server.answer = ollama_server.chat_answer("{}")
        await harness.ask(sampling=asking(max_tokens=4, min_p=0.1, num_ctx=512, response_format=JSON_SCHEMA))
        assert harness.server.last_body["format"] == SCHEMA
        assert harness.server.last_body["options"] == {"num_predict": 4, "min_p": 0.1, "num_ctx": 512}
        await harness.ask(sampling=asking(response_format={"type": "json_object"}))
        assert harness.server.last_body["format"] == "json"
        assert harness.server.last_body["options"] == {}


async def test_gemini_gets_the_format_and_the_penalties() -> None:
    async with native_stand(GEMINI) as harness:
        await harness.ask(sampling=asking(presence_penalty=0.5, temperature=0, response_format=JSON_SCHEMA))
        assert harness.server.last_body["generationConfig"] == {
            "temperature": 0,
            "presencePenalty": 0.5,
            "responseMimeType": "application/json",
            "responseJsonSchema": SCHEMA,
        }
        await harness.ask(sampling=OPEN)
        assert harness.server.last_body["generationConfig"] == {}


async def test_anthropic_gets_a_limit_since_it_takes_no_request_without_one() -> None:
    async with native_stand(ANTHROPIC) as harness:
        await harness.ask(sampling=OPEN)
        assert harness.server.last_body["max_tokens"] == 4096
        assert "temperature" not in harness.server.last_body
        with pytest.raises(RequestRefused, match="Anthropic takes no response_format here"):
            await harness.ask(sampling=asking(response_format=JSON_SCHEMA))


@pytest.mark.parametrize("temperature", [0, 0.7])
async def test_anthropic_samples_in_its_own_way_so_a_row_with_another_is_refused(temperature: float) -> None:
    async with native_stand(ANTHROPIC) as harness:
        with pytest.raises(RequestRefused, match="takes no temperature; leave it out of the line"):
            await harness.ask(sampling=asking(temperature=temperature))
        await harness.ask(sampling=asking(temperature=1))
