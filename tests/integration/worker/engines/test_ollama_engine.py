"""The engine `ollama`, against a server that answers as Ollama documents."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from proctor.values.providers.models import ModelCapabilities
from proctor.values.sample import Prompt
from proctor.values.usage import TokenUsage
from services.worker.engines import engine
from services.worker.engines.errors import PromptTooLong, ProviderFailed
from tests.fakes.providers import ollama_server
from tests.fakes.worker.provider_engines import OLLAMA, SAMPLING, NativeStand, chat, native_stand


@pytest.fixture
async def harness() -> AsyncIterator[NativeStand]:
    async with native_stand(OLLAMA) as made:
        yield made


async def test_parameters_have_ollamas_names(harness: NativeStand) -> None:
    sampling = engine.Sampling(
        max_tokens=8,
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        seed=7,
        stop=("\n\n",),
        repetition_penalty=1.1,
        context_tokens=2048,
        extra={"keep_alive": "10m", "think": False, "num_keep": 4, "num_predict": 999},
    )
    await harness.ask(sampling=sampling)
    assert harness.server.last_body == {
        "model": "fake",
        "messages": [{"role": "user", "content": "What follows? KEY=seven"}],
        "stream": False,
        "truncate": False,
        "shift": False,
        "keep_alive": "10m",
        "think": False,
        "options": {
            "num_keep": 4,
            "num_predict": 8,
            "temperature": 0.5,
            "top_p": 0.9,
            "top_k": 40,
            "seed": 7,
            "stop": ["\n\n"],
            "repeat_penalty": 1.1,
            "num_ctx": 2048,
        },
    }


async def test_only_what_was_set_is_sent(harness: NativeStand) -> None:
    await harness.ask()
    assert harness.server.last_body["options"] == {"num_predict": 16, "temperature": 0.0}
    assert "format" not in harness.server.last_body


async def test_text_is_continued_without_a_template(harness: NativeStand) -> None:
    response = await harness.asked.generate(harness.model, Prompt("So KEY=ten"), SAMPLING)
    assert response.answer.text == "The answer is ten."
    assert harness.server.asked[-1].path == "/api/generate"
    assert harness.server.last_body["raw"] is True
    assert harness.server.last_body["prompt"] == "So KEY=ten"


@pytest.mark.parametrize("prompt", [chat("So?"), Prompt("So?")], ids=["chat", "completion"])
async def test_only_allowed_texts_are_generated(harness: NativeStand, prompt: Prompt) -> None:
    choosing = replace(SAMPLING, allowed_texts=("not at all", "a bit"))
    assert (await harness.asked.generate(harness.model, prompt, choosing)).answer.text == "not at all"


async def test_answer_outside_of_the_schema_may_be_asked_for_again(harness: NativeStand) -> None:
    harness.server.answer = ollama_server.chat_answer("not at all")
    with pytest.raises(ProviderFailed, match="JSON format"):
        await harness.ask(sampling=replace(SAMPLING, allowed_texts=("not at all",)))


async def test_prompt_that_does_not_fit_the_context_is_no_silently_cut_prompt(harness: NativeStand) -> None:
    with pytest.raises(PromptTooLong, match="exceeds the context length"):
        await harness.ask("word " * 100, replace(SAMPLING, context_tokens=64))
    assert (await harness.ask("word " * 100, replace(SAMPLING, context_tokens=128))).answer.text


async def test_prompt_that_is_too_long_is_known_by_its_message_whatever_the_status(
    harness: NativeStand,
) -> None:
    harness.server.error = ollama_server.error(500, "the input length exceeds the context length")
    with pytest.raises(PromptTooLong):
        await harness.ask()


async def test_answer_cut_at_the_limit_ends_by_length(harness: NativeStand) -> None:
    harness.server.answer = ollama_server.chat_answer("The answer", done_reason="length")
    assert (await harness.ask()).answer.finish_reason == "length"


@pytest.mark.parametrize("reason", ["unload", "load"])
async def test_a_model_that_was_only_loaded_or_unloaded_gave_no_answer(
    harness: NativeStand, reason: str
) -> None:
    harness.server.answer = ollama_server.chat_answer("", done_reason=reason)
    with pytest.raises(ProviderFailed, match=reason):
        await harness.ask()


async def test_answer_that_is_not_done_is_none(harness: NativeStand) -> None:
    harness.server.answer = ollama_server.chat_answer("The answer", done=False)
    with pytest.raises(ProviderFailed, match="before the model was done"):
        await harness.ask()


async def test_tokens_are_counted_as_ollama_does(harness: NativeStand) -> None:
    harness.server.answer = ollama_server.chat_answer("Seven.", prompt_eval_count=26, eval_count=290)
    assert (await harness.ask()).usage == TokenUsage(prompt_tokens=26, completion_tokens=290)


async def test_models_are_listed_with_size_and_quantization_and_without_embedders(
    harness: NativeStand,
) -> None:
    harness.server.models = ("llama3.2:latest", "embed-text:latest", "hf.co/a/b:Q8_0", "broken")
    [llama, other, broken] = await harness.asked.list_models()
    assert (llama.model, other.model) == ("ollama/llama3.2:latest", "ollama/hf.co/a/b:Q8_0")
    assert (llama.size_bytes, llama.quantization, llama.context_tokens) == (1_321_098_329, "Q4_K_M", 131072)
    assert (broken.model, broken.context_tokens) == ("ollama/broken", None)
    assert llama.created_at == datetime(2026, 10, 1, 12, tzinfo=UTC)
    assert llama.capabilities == ModelCapabilities(
        loglikelihood=False, chat=True, completion=True, constrained=True, seed=True, logprobs=False
    )


async def test_memory_is_estimated_until_the_model_is_loaded(harness: NativeStand) -> None:
    [fake] = await harness.asked.list_models()
    cache = 2 * 16 * 8 * (2048 // 32) * 4096 * 2
    assert (fake.is_loaded, fake.memory_bytes) == (False, 1_321_098_329 + cache)
    await harness.ask()
    [fake] = await harness.asked.list_models()
    assert (fake.is_loaded, fake.memory_bytes) == (True, ollama_server.LOADED_BYTES)


async def test_server_that_cannot_list_loaded_models_lists_its_models() -> None:
    async with native_stand(replace(OLLAMA, routes=ollama_server.ROUTES_BEFORE_PS)) as older:
        [fake] = await older.asked.list_models()
    assert (fake.model, fake.is_loaded) == ("ollama/fake", False)


async def test_server_without_keys_is_asked_without_one(harness: NativeStand) -> None:
    async with harness.other_engine(api_key=None) as keyless:
        response = await keyless.generate(harness.model, chat("KEY=one"), SAMPLING)
    assert response.answer.text == "The answer is one."
    assert "Authorization" not in harness.server.asked[-1].headers
