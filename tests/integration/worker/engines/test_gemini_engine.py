"""The engine `gemini`, against a server that answers as Google documents."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from proctor.values.outcome import Answer
from proctor.values.providers.models import ModelCapabilities
from proctor.values.sample import ChatMessage, Prompt
from proctor.values.usage import TokenUsage
from services.worker.engines import engine
from services.worker.engines.errors import PromptTooLong, ProviderFailed, RateLimited, RequestRefused
from tests.fakes.providers import gemini_server
from tests.fakes.providers.provider_server import SECRET
from tests.fakes.worker.provider_engines import GEMINI, SAMPLING, NativeStand, native_stand


@pytest.fixture
async def harness() -> AsyncIterator[NativeStand]:
    async with native_stand(GEMINI) as made:
        yield made


async def test_parameters_have_googles_names_and_the_key_a_header(harness: NativeStand) -> None:
    thinking = {"thinkingBudget": 0}
    sampling = engine.Sampling(
        max_tokens=8,
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        seed=7,
        stop=("\n\n",),
        extra={"thinkingConfig": thinking, "safetySettings": [], "temperature": 2},
    )
    await harness.ask(sampling=sampling)
    asked = harness.server.asked[-1]
    assert asked.path == "/models/fake:generateContent"
    assert asked.headers["x-goog-api-key"] == SECRET
    assert asked.body == {
        "contents": [{"role": "user", "parts": [{"text": "What follows? KEY=seven"}]}],
        "safetySettings": [],
        "generationConfig": {
            "maxOutputTokens": 8,
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 40,
            "seed": 7,
            "stopSequences": ["\n\n"],
            "thinkingConfig": thinking,
        },
    }


async def test_turns_have_googles_roles_and_the_system_a_field_of_its_own(harness: NativeStand) -> None:
    turns = (("system", "Be brief."), ("user", "KEY=one"), ("assistant", "One."), ("user", "KEY=two"))
    prompt = Prompt(messages=tuple(ChatMessage(*turn) for turn in turns))
    assert (await harness.asked.generate(harness.model, prompt, SAMPLING)).answer.text == "The answer is two."
    assert harness.server.last_body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert [turn["role"] for turn in harness.server.last_body["contents"]] == ["user", "model", "user"]


async def test_only_allowed_texts_are_generated(harness: NativeStand) -> None:
    response = await harness.ask(sampling=replace(SAMPLING, allowed_texts=("a bit", "none")))
    assert response.answer.text == "a bit"


@pytest.mark.parametrize(
    "sampling", [replace(SAMPLING, repetition_penalty=1.1), replace(SAMPLING, context_tokens=2048)]
)
async def test_parameter_that_the_api_does_not_have_is_refused(
    harness: NativeStand, sampling: engine.Sampling
) -> None:
    with pytest.raises(RequestRefused, match=r"^Gemini takes no \w+; leave it out"):
        await harness.ask(sampling=sampling)
    assert not harness.server.asked


async def test_more_stops_than_the_api_takes_end_the_answer_all_the_same(harness: NativeStand) -> None:
    harness.server.answer = gemini_server.answer("Seven. STOP6 Eight. STOP5 Nine.")
    sampling = replace(SAMPLING, stop=tuple(f"STOP{number}" for number in range(7)))
    response = await harness.ask(sampling=sampling)
    assert (response.answer.text, response.answer.finish_reason) == ("Seven. ", "stop")
    assert harness.server.last_body["generationConfig"]["stopSequences"] == list(sampling.stop[:5])


async def test_blocked_prompt_is_refused(harness: NativeStand) -> None:
    harness.server.answer = gemini_server.blocked_prompt("PROHIBITED_CONTENT")
    with pytest.raises(RequestRefused, match=r"blocked the prompt \(PROHIBITED_CONTENT\)"):
        await harness.ask()


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "BLOCKLIST", "SPII", "LANGUAGE"])
async def test_withheld_answer_is_none_whatever_text_precedes(harness: NativeStand, reason: str) -> None:
    harness.server.answer = gemini_server.answer("To build one, first", finish_reason=reason)
    with pytest.raises(RequestRefused, match=rf"withheld the answer \({reason}\)"):
        await harness.ask()


async def test_answer_that_was_all_thought_is_cut_at_the_limit(harness: NativeStand) -> None:
    harness.server.answer = gemini_server.answer("", finish_reason="MAX_TOKENS")
    response = await harness.ask()
    assert (response.answer.text, response.answer.finish_reason) == ("", "length")


@pytest.mark.parametrize(
    "reason",
    ["MALFORMED_RESPONSE", "MALFORMED_FUNCTION_CALL", "TOO_MANY_TOOL_CALLS", "OTHER", "A_NEW_ONE"],
)
@pytest.mark.parametrize("text", ["", "It follows"])
async def test_answer_that_the_provider_broke_off_is_none(
    harness: NativeStand, reason: str, text: str
) -> None:
    harness.server.answer = gemini_server.answer(text, finish_reason=reason)
    with pytest.raises(ProviderFailed, match=rf"broke off its answer \({reason}\)"):
        await harness.ask()


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
async def test_a_call_in_the_wrong_form_is_an_answer_where_tools_were_offered(
    harness: NativeStand, reason: str
) -> None:
    harness.server.answer = gemini_server.answer("I look.", finish_reason=reason)
    tool = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
    response = await harness.ask(sampling=replace(SAMPLING, row_extra={"tools": [tool]}))
    assert response.answer == Answer("I look.", "stop")


async def test_a_word_of_the_provider_is_cut_in_messages(harness: NativeStand) -> None:
    harness.server.answer = gemini_server.answer("", finish_reason="R" * 1_000_000)
    with pytest.raises(ProviderFailed) as caught:
        await harness.ask()
    assert len(str(caught.value)) < 200


async def test_thoughts_are_tokens_of_the_answer(harness: NativeStand) -> None:
    usage = {
        "promptTokenCount": 900,
        "cachedContentTokenCount": 800,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 95,
        "totalTokenCount": 1000,
    }
    harness.server.answer = gemini_server.answer("Seven.", usage=usage)
    assert (await harness.ask()).usage == TokenUsage(
        prompt_tokens=900, completion_tokens=100, cached_tokens=800, reasoning_tokens=95
    )


async def test_wrong_key_is_known_though_it_comes_as_a_bad_request(harness: NativeStand) -> None:
    async with harness.other_engine(api_key="not-the-key") as other:
        with pytest.raises(RequestRefused, match="check the API key in GEMINI_API_KEY") as caught:
            await other.list_models()
    assert "not-the-key" not in str(caught.value)


@pytest.mark.parametrize(("delay", "seconds"), [("34.5s", 34.5), ("0s", 0.0), ("soon", None)])
async def test_rate_limit_has_its_retry_delay_in_the_body(
    harness: NativeStand, delay: str, seconds: float | None
) -> None:
    info = gemini_server.retry_info(delay)
    harness.server.error = gemini_server.error(429, "RESOURCE_EXHAUSTED", "Quota exceeded", info)
    with pytest.raises(RateLimited) as caught:
        await harness.ask()
    assert caught.value.retry_after_seconds == seconds


async def test_prompt_that_is_too_long_has_a_class_of_its_own(harness: NativeStand) -> None:
    problem = "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)."
    harness.server.error = gemini_server.error(400, "INVALID_ARGUMENT", problem)
    with pytest.raises(PromptTooLong, match="2000000"):
        await harness.ask()


async def test_list_of_models_that_names_one_page_for_ever_ends(harness: NativeStand) -> None:
    harness.server.answer = {"models": [gemini_server.listed("gemini-a")], "nextPageToken": "again"}
    assert len(await asyncio.wait_for(harness.asked.list_models(), 5)) == 2


async def test_all_pages_of_models_are_listed_without_embedders(harness: NativeStand) -> None:
    harness.server.models = ("gemini-a", "embed-b", "gemini-c")
    models = await harness.asked.list_models()
    assert [model.model for model in models] == ["gemini/gemini-a", "gemini/gemini-c"]
    assert models[0].context_tokens == 1048576
    assert models[0].capabilities == ModelCapabilities(
        loglikelihood=False, chat=True, completion=False, constrained=True, seed=True, logprobs=False
    )
