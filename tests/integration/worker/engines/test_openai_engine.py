"""The engine `openai` over a real socket, against a server that answers by rule and misbehaves on demand."""

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from proctor.values.outcome import FailureClass
from proctor.values.providers.pool import ConstrainedField
from proctor.values.sample import ChatMessage, Prompt
from proctor.values.usage import TokenUsage
from services.worker.engines import engine
from services.worker.engines.errors import EngineFailure, ModelRefused, RequestRefused, UnsupportedRequest
from services.worker.engines.http.provider_engine import HttpEngine
from services.worker.engines.http.responses import MAX_BYTES
from services.worker.engines.http.server import Endpoint
from services.worker.engines.openai.api import ANY_SERVER, OPENAI, OpenAIApi, OpenAIServer
from tests.fakes.eventually import eventually
from tests.fakes.providers.echo_scores import token_logprob
from tests.fakes.providers.model_server import CREATED, Fault, ModelServer, serving

MODEL = "fake-provider/fake"
SAMPLING = engine.Sampling(max_tokens=16, stop=("\n",))
QUESTION = Prompt(text="What follows? KEY=seven")
SECRET = "sk-secret-of-the-test"


@pytest.fixture
async def server() -> AsyncIterator[tuple[ModelServer, Endpoint]]:
    state = ModelServer(api_key=SECRET)
    async with serving(state) as port:
        address = f"http://127.0.0.1:{port}/v1"
        yield state, Endpoint(address, "fake-provider", SECRET, timeout_seconds=5.0)


@pytest.fixture
def state(server: tuple[ModelServer, Endpoint]) -> ModelServer:
    return server[0]


@pytest.fixture
def endpoint(server: tuple[ModelServer, Endpoint]) -> Endpoint:
    return server[1]


@pytest.fixture
async def openai(endpoint: Endpoint) -> AsyncIterator[HttpEngine]:
    opened = HttpEngine(OpenAIApi(), endpoint)
    yield opened
    await opened.close()


async def failure_of(openai: HttpEngine, model: str = MODEL) -> EngineFailure:
    with pytest.raises(EngineFailure) as caught:
        await openai.generate(model, QUESTION, SAMPLING)
    assert SECRET not in str(caught.value)
    return caught.value


async def test_text_prompt_is_completed(openai: HttpEngine, state: ModelServer) -> None:
    response = await openai.generate(MODEL, QUESTION, SAMPLING)
    assert response.answer.text == " The answer is seven."
    assert response.usage == TokenUsage(prompt_tokens=3, completion_tokens=4)
    assert state.last_request == {
        "model": "fake", "prompt": QUESTION.text, "max_tokens": 16, "temperature": 0.0, "stop": ["\n"],
    }  # fmt: skip


async def test_messages_are_answered(openai: HttpEngine) -> None:
    prompt = Prompt(messages=(ChatMessage("user", "What follows? KEY=eight"),))
    assert (await openai.generate(MODEL, prompt, SAMPLING)).answer.text == "The answer is eight."


@pytest.mark.parametrize("known", [OPENAI, ANY_SERVER])
async def test_answers_are_limited_by_the_field_that_the_server_takes(
    endpoint: Endpoint, state: ModelServer, known: OpenAIServer
) -> None:
    """OpenAI's reasoning models refuse max_tokens; to continue a text there is nothing else."""
    openai = HttpEngine(OpenAIApi(server=known), endpoint)
    chat = Prompt(messages=(ChatMessage("user", "What follows? KEY=eight"),))
    await openai.generate(MODEL, chat, SAMPLING)
    limits = {name: value for name, value in state.last_request.items() if name.startswith("max_")}
    assert limits == {known.chat_limit: 16}
    await openai.generate(MODEL, QUESTION, SAMPLING)
    assert state.last_request["max_tokens"] == 16
    assert "max_completion_tokens" not in state.last_request
    await openai.close()


async def test_a_server_that_is_known_to_need_a_key_is_not_asked_without_one(
    endpoint: Endpoint, state: ModelServer
) -> None:
    endpoint = replace(endpoint, api_key=None, api_key_env="OPENAI_API_KEY")
    openai = HttpEngine(OpenAIApi(server=OPENAI), endpoint)
    with pytest.raises(ModelRefused) as refused:
        await openai.generate(MODEL, QUESTION, SAMPLING)
    assert str(refused.value) == (
        "API key not configured for OpenAI: set OPENAI_API_KEY where the worker runs "
        "(https://platform.openai.com/api-keys gives keys)."
    )
    assert not state.last_request
    await openai.close()


async def test_an_error_in_the_place_of_an_answer_is_the_failure_of_its_status(
    openai: HttpEngine, state: ModelServer
) -> None:
    state.answer = {"error": {"message": f"Insufficient credits of {SECRET}", "code": "402"}}
    refused = await failure_of(openai)
    assert isinstance(refused, ModelRefused)
    assert refused.is_certain
    assert str(refused) == (
        "The server answered 200 with the error 402 and said: Insufficient credits of *** "
        "(check the provider's plan and billing)."
    )
    state.answer = {
        "choices": [{"index": 0, "text": "", "finish_reason": "error"}],
        "usage": {"prompt_tokens": 9},
    }
    assert (await failure_of(openai)).usage == TokenUsage(prompt_tokens=9)
    said = {"message": "This endpoint's maximum context length is 10 tokens", "code": 400}
    state.answer = {"choices": [{"index": 0, "error": said, "finish_reason": "error"}]}
    assert (await failure_of(openai)).failure_class is FailureClass.PROMPT_TOO_LONG


async def test_parameters_reach_the_server_when_they_are_set(openai: HttpEngine, state: ModelServer) -> None:
    sampling = replace(
        SAMPLING,
        temperature=0.5,
        top_p=0.9,
        top_k=5,
        seed=7,
        extra={"logit_bias": {"1": 2}, "model": "other", "prompt": "another", "temperature": 2},
    )
    await openai.generate(MODEL, QUESTION, sampling)
    sent = {
        name: state.last_request[name] for name in ("temperature", "top_p", "top_k", "seed", "logit_bias")
    }
    assert sent == {"temperature": 0.5, "top_p": 0.9, "top_k": 5, "seed": 7, "logit_bias": {"1": 2}}


async def test_choices_are_scored_by_echo_in_one_request(openai: HttpEngine, state: ModelServer) -> None:
    context, choices = "Review: fine.\nSentiment:", [" positive", " negative"]
    scored = await openai.score_choices(MODEL, Prompt(context), choices, truncate_left=False)
    expected = [token_logprob(context, choice) for choice in choices]
    assert [choice.logprob for choice in scored.answer.choices] == expected
    assert [choice.is_greedy for choice in scored.answer.choices] == [value > -1 for value in expected]
    assert state.counts["requests"] == 1


async def test_choice_of_many_words_is_the_sum_of_its_tokens(openai: HttpEngine) -> None:
    scored = await openai.score_choices(MODEL, Prompt("So:"), [" not at all"], truncate_left=False)
    expected = sum(
        token_logprob(*pair) for pair in (("So:", " not"), ("So: not", " at"), ("So: not at", " all"))
    )
    assert scored.answer.choices[0].logprob == pytest.approx(expected)
    assert scored.answer.choices[0].token_count == 3


async def test_known_continuation_is_scored_whole(openai: HttpEngine, state: ModelServer) -> None:
    state.continuations = (" not at all",)
    scored = await openai.score_choices(MODEL, Prompt("So:"), [" not at all"], truncate_left=False)
    assert scored.answer.choices[0].logprob == token_logprob("So:", " not at all")


async def test_an_ending_is_scored_after_each_choice(openai: HttpEngine, state: ModelServer) -> None:
    state.continuations = (" left early.",)
    choices = ["Ann left early.", "The old man left early."]
    scored = await openai.score_choices(
        MODEL, Prompt(""), choices, ending=" left early.", truncate_left=False
    )
    expected = [token_logprob(context, " left early.") for context in ("Ann", "The old man")]
    assert [choice.logprob for choice in scored.answer.choices] == expected


async def test_messages_cannot_be_scored_by_echo(openai: HttpEngine) -> None:
    prompt = Prompt(messages=(ChatMessage("user", "So?"),))
    with pytest.raises(UnsupportedRequest):
        await openai.score_choices(MODEL, prompt, [" yes"], truncate_left=False)


CHOICES = (" not at all", " a bit", " quite so")
CHOOSING = replace(SAMPLING, allowed_texts=CHOICES)


@pytest.mark.parametrize("field", list(ConstrainedField))
async def test_only_the_choices_are_generated_by_any_constraint_field(
    endpoint: Endpoint, state: ModelServer, field: ConstrainedField
) -> None:
    openai = HttpEngine(OpenAIApi(constrained_field=field), endpoint)
    chat = Prompt(messages=(ChatMessage("user", "So?"),))
    said = {(await openai.generate(MODEL, prompt, CHOOSING)).answer.text for prompt in (Prompt("So?"), chat)}
    assert said <= set(CHOICES)
    assert field.value in state.last_request
    [model] = await openai.list_models()
    assert model.capabilities is not None
    assert model.capabilities.constrained
    await openai.generate(MODEL, QUESTION, SAMPLING)
    assert field.value not in state.last_request
    await openai.close()


async def test_constraint_of_a_pool_that_names_no_field_is_refused_before_asking(
    openai: HttpEngine, state: ModelServer
) -> None:
    with pytest.raises(UnsupportedRequest, match="constrained_field"):
        await openai.generate(MODEL, QUESTION, CHOOSING)
    assert state.counts["requests"] == 0


async def test_size_of_the_context_belongs_to_the_server(openai: HttpEngine, state: ModelServer) -> None:
    with pytest.raises(RequestRefused, match="takes no context_tokens"):
        await openai.generate(MODEL, QUESTION, replace(SAMPLING, context_tokens=2048))
    assert state.counts["requests"] == 0


reference_dir = os.environ.get("PROCTOR_REFERENCE_DIR", "")


@pytest.mark.skipif(not reference_dir, reason="PROCTOR_REFERENCE_DIR is not set")
async def test_reference_scores_come_back_over_the_socket(openai: HttpEngine, state: ModelServer) -> None:
    golden = json.loads((Path(reference_dir) / "lm_eval" / "golden_0shot.json").read_text(encoding="utf-8"))
    for task in ("sst2", "rte", "mnli"):
        for document in golden[task]["docs"][:5]:
            context = document["arguments"][0][0]
            choices = [continuation for _, continuation in document["arguments"]]
            state.continuations = tuple(choices)
            scored = await openai.score_choices(MODEL, Prompt(context), choices, truncate_left=False)
            assert [each.logprob for each in scored.answer.choices] == [
                token_logprob(context, c) for c in choices
            ]


@pytest.mark.parametrize(
    ("fault", "failure_class", "is_transient"),
    [
        (Fault("status", 429), FailureClass.RATE_LIMIT, True),
        (Fault("status", 500), FailureClass.PROVIDER_ERROR, True),
        (Fault("status", 400, code="context_length_exceeded"), FailureClass.PROMPT_TOO_LONG, False),
        (Fault("status", 400), FailureClass.REFUSED, False),
        (Fault("half_body"), FailureClass.PROVIDER_ERROR, True),
        (Fault("malformed"), FailureClass.PROVIDER_ERROR, True),
        (Fault("swollen"), FailureClass.PROVIDER_ERROR, True),
        (Fault("reset"), FailureClass.PROVIDER_ERROR, True),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
async def test_failures_are_classified(
    openai: HttpEngine,
    state: ModelServer,
    *,
    fault: Fault,
    failure_class: FailureClass,
    is_transient: bool,
) -> None:
    state.fault = fault
    failure = await failure_of(openai)
    assert (failure.failure_class, failure.is_transient) == (failure_class, is_transient)


async def test_no_more_is_read_than_any_answer_has(openai: HttpEngine, state: ModelServer) -> None:
    state.fault = Fault("swollen")
    assert re.search(r"more than 16,78\d,\d{3} bytes", str(await failure_of(openai)))


async def test_echo_of_a_long_context_is_read_whatever_its_size(
    openai: HttpEngine, state: ModelServer
) -> None:
    """Of each token some hundred bytes come back: what is too much depends on what was sent."""
    context = "a" * 100_000
    reported = {"text_offset": [len(context)], "token_logprobs": [-1.0], "tokens": ["x" * MAX_BYTES]}
    state.answer = {"choices": [{"index": 0, "logprobs": reported}]}
    scored = await openai.score_choices(MODEL, Prompt(context), [" yes"], truncate_left=False)
    assert scored.answer.choices[0].token_count == 1


async def test_engine_answers_again_after_a_failure(openai: HttpEngine, state: ModelServer) -> None:
    state.fault = Fault("reset", count=1)
    await failure_of(openai)
    assert (await openai.generate(MODEL, QUESTION, SAMPLING)).answer.text == " The answer is seven."


async def test_engine_asks_once_and_leaves_retrying_to_others(openai: HttpEngine, state: ModelServer) -> None:
    state.fault = Fault("status", 503)
    await failure_of(openai)
    assert state.counts["requests"] == 1


async def test_rate_limit_has_its_retry_after(openai: HttpEngine, state: ModelServer) -> None:
    state.fault = Fault("status", 429, retry_after="7")
    assert (await failure_of(openai)).retry_after_seconds == 7.0


async def test_silent_server_is_a_timeout(endpoint: Endpoint, state: ModelServer) -> None:
    state.fault = Fault("hang", seconds=30)
    openai = HttpEngine(OpenAIApi(), replace(endpoint, timeout_seconds=0.2))
    started = time.monotonic()
    assert (await failure_of(openai)).failure_class is FailureClass.TIMEOUT
    assert time.monotonic() - started < 3
    await openai.close()


async def test_wrong_key_is_refused_without_telling_it(endpoint: Endpoint) -> None:
    openai = HttpEngine(OpenAIApi(), replace(endpoint, api_key="sk-wrong-key"))
    failure = await failure_of(openai)
    assert failure.failure_class is FailureClass.REFUSED
    assert "API key" in str(failure)
    assert "sk-wrong-key" not in str(failure)
    await openai.close()


async def test_key_is_not_shown_with_the_settings(endpoint: Endpoint) -> None:
    assert SECRET not in repr(endpoint)


async def test_unknown_model_is_refused(openai: HttpEngine) -> None:
    failure = await failure_of(openai, "fake-provider/other")
    assert failure.failure_class is FailureClass.REFUSED
    assert "model" in str(failure)


async def test_server_that_is_not_there_is_named() -> None:
    openai = HttpEngine(OpenAIApi(), Endpoint("http://127.0.0.1:9/v1", "fake-provider", timeout_seconds=5.0))
    failure = await failure_of(openai)
    assert failure.is_transient
    assert "127.0.0.1:9" in str(failure)
    await openai.close()


async def test_cancelled_request_is_aborted_at_the_server(openai: HttpEngine, state: ModelServer) -> None:
    state.latency_seconds = 30
    asking = asyncio.create_task(openai.generate(MODEL, QUESTION, SAMPLING))
    await eventually(lambda: state.in_flight == 1, "the server has the request")
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await eventually(lambda: state.in_flight == 0, "the server let go of the request")
    assert state.counts["aborted"] == 1


async def test_cancellation_that_meets_an_answer_is_kept(openai: HttpEngine, state: ModelServer) -> None:
    async def ask_on() -> None:
        while True:
            await openai.generate(MODEL, QUESTION, SAMPLING)

    for _ in range(5):
        enough = state.counts["answered"] + 64
        asking = [asyncio.create_task(ask_on()) for _ in range(32)]
        await eventually(partial(_has_answered, state, enough), "answers come in")
        for each in asking:
            each.cancel()
        _, still_asking = await asyncio.wait(asking, timeout=5)
        assert not still_asking


def _has_answered(state: ModelServer, count: int) -> bool:
    return state.counts["answered"] >= count


async def test_models_are_listed_under_the_providers_name(openai: HttpEngine) -> None:
    models = await openai.list_models()
    assert [model.model for model in models] == [MODEL]
    assert models[0].created_at == datetime.fromtimestamp(CREATED, UTC)


async def test_description_holds_no_password(endpoint: Endpoint) -> None:
    openai = HttpEngine(OpenAIApi(), replace(endpoint, base_url="http://me:hidden@example.org/v1"))
    assert (await openai.describe())["base_url"] == "http://example.org/v1"
    await openai.close()


async def test_many_requests_at_once_are_all_answered(openai: HttpEngine, state: ModelServer) -> None:
    prompts = [Prompt(f"Which number? KEY={number}") for number in range(200)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(openai.generate(MODEL, prompt, SAMPLING)) for prompt in prompts]
    assert [task.result().answer.text for task in tasks] == [
        f" The answer is {number}." for number in range(200)
    ]
    assert state.counts["answered"] == 200
