"""The engine `anthropic`, against a server that answers as Anthropic documents."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from proctor.values.providers.models import ModelCapabilities
from proctor.values.sample import ChatMessage, Prompt
from proctor.values.usage import TokenUsage
from services.worker.engines import engine
from services.worker.engines.errors import (
    EngineFailure,
    PromptTooLong,
    ProviderFailed,
    RequestRefused,
    UnsupportedRequest,
)
from tests.fakes.providers import anthropic_server
from tests.fakes.providers.provider_server import SECRET
from tests.fakes.worker.provider_engines import ANTHROPIC, SAMPLING, NativeStand, native_stand


@pytest.fixture
async def harness() -> AsyncIterator[NativeStand]:
    async with native_stand(ANTHROPIC) as made:
        yield made


async def test_request_carries_key_and_version_and_what_was_set(harness: NativeStand) -> None:
    thinking = {"type": "disabled"}
    await harness.ask(
        sampling=replace(SAMPLING, stop=("\nQ:",), extra={"thinking": thinking, "max_tokens": 9})
    )
    asked = harness.server.asked[-1]
    assert (asked.headers["x-api-key"], asked.headers["anthropic-version"]) == (SECRET, "2026-10-21")
    assert asked.body == {
        "model": "fake",
        "messages": [{"role": "user", "content": "What follows? KEY=seven"}],
        "max_tokens": 16,
        "stop_sequences": ["\nQ:"],
        "thinking": thinking,
    }


async def test_the_system_prompt_is_sent_separately(harness: NativeStand) -> None:
    turns = (("system", "Be brief."), ("user", "KEY=one"), ("assistant", "One."), ("user", "KEY=two"))
    prompt = Prompt(messages=tuple(ChatMessage(*turn) for turn in turns))
    assert (await harness.asked.generate(harness.model, prompt, SAMPLING)).answer.text == "The answer is two."
    assert harness.server.last_body["system"] == "Be brief."
    assert [turn["role"] for turn in harness.server.last_body["messages"]] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    "sampling",
    [
        replace(SAMPLING, temperature=0.7),
        replace(SAMPLING, top_p=0.9),
        replace(SAMPLING, top_k=40),
        replace(SAMPLING, seed=7),
        replace(SAMPLING, repetition_penalty=1.1),
        replace(SAMPLING, context_tokens=2048),
    ],
)
async def test_parameter_that_the_api_has_no_more_is_refused_in_one_sentence(
    harness: NativeStand, sampling: engine.Sampling
) -> None:
    with pytest.raises(RequestRefused, match=r"^Anthropic takes no \w+; leave it out"):
        await harness.ask(sampling=sampling)
    assert not harness.server.asked


async def test_constraint_is_refused(harness: NativeStand) -> None:
    with pytest.raises(UnsupportedRequest, match="constrains no answer"):
        await harness.ask(sampling=replace(SAMPLING, allowed_texts=("yes", "no")))


async def test_facts_name_the_providers_own_sampling(harness: NativeStand) -> None:
    facts = await harness.asked.describe()
    assert (facts["engine"], facts["api_version"]) == ("anthropic", "2026-10-21")
    assert "no temperature" in facts["sampling"]


async def test_stop_of_white_space_alone_ends_the_answer_though_the_api_refuses_it(
    harness: NativeStand,
) -> None:
    harness.server.answer = anthropic_server.message("Seven.\n\nEight.", stop_reason="max_tokens")
    response = await harness.ask(sampling=replace(SAMPLING, stop=("\n\n", "Q:")))
    assert (response.answer.text, response.answer.finish_reason) == ("Seven.", "stop")
    assert harness.server.last_body["stop_sequences"] == ["Q:"]


@pytest.mark.parametrize(
    ("stop_reason", "finish_reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "pause_turn"),
    ],
)
async def test_finish_reason_is_the_common_one(
    harness: NativeStand, stop_reason: str, finish_reason: str
) -> None:
    harness.server.answer = anthropic_server.message("Seven.", stop_reason=stop_reason)
    assert (await harness.ask()).answer.finish_reason == finish_reason


@pytest.mark.parametrize("text", ["", "To build one, first"])
async def test_refusal_is_no_answer_whatever_text_precedes(harness: NativeStand, text: str) -> None:
    harness.server.answer = anthropic_server.refusal(text)
    with pytest.raises(RequestRefused, match=r"refused to answer \(category cyber\)"):
        await harness.ask()


async def test_tokens_of_the_cache_are_tokens_of_the_prompt(harness: NativeStand) -> None:
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": 3000,
        "output_tokens": 50,
        "output_tokens_details": {"thinking_tokens": 45},
    }
    harness.server.answer = anthropic_server.message("Seven.", usage=usage)
    assert (await harness.ask()).usage == TokenUsage(
        prompt_tokens=3210, completion_tokens=50, cached_tokens=200, reasoning_tokens=45
    )


@pytest.mark.parametrize(
    ("status", "kind", "message", "failure"),
    [
        (400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000", PromptTooLong),
        (400, "billing_error", "Your credit balance is too low", RequestRefused),
        (413, "request_too_large", "Request exceeds the maximum size", PromptTooLong),
        (529, "overloaded_error", "Overloaded", ProviderFailed),
    ],
)
async def test_types_of_errors_are_understood(
    harness: NativeStand, status: int, kind: str, message: str, failure: type[EngineFailure]
) -> None:
    harness.server.error = anthropic_server.error(status, kind, message)
    with pytest.raises(failure, match=message[:15]):
        await harness.ask()


async def test_wrong_key_is_reported_by_its_variable(harness: NativeStand) -> None:
    async with harness.other_engine(api_key="not-the-key") as other:
        with pytest.raises(RequestRefused, match="check the API key in ANTHROPIC_API_KEY") as caught:
            await other.list_models()
    assert "not-the-key" not in str(caught.value)


async def test_list_of_models_that_goes_in_circles_ends(harness: NativeStand) -> None:
    # The fake server looks for the first one of a name.
    harness.server.models = ("claude-a", "claude-b", "claude-a", "claude-c")
    assert len(await asyncio.wait_for(harness.asked.list_models(), 5)) == 3


async def test_all_pages_of_models_are_listed(harness: NativeStand) -> None:
    harness.server.models = ("claude-a", "claude-b", "claude-c")
    models = await harness.asked.list_models()
    assert [model.model for model in models] == [f"anthropic/{name}" for name in harness.server.models]
    assert models[0].context_tokens == 200000
    assert models[0].created_at == datetime(2026, 2, 4, tzinfo=UTC)
    assert models[0].capabilities == ModelCapabilities(
        loglikelihood=False, chat=True, completion=False, constrained=False, seed=False, logprobs=False
    )
