"""Orders beyond a provider's abilities are refused, in one sentence that says what to do."""

from dataclasses import replace
from typing import Any

import pytest

from proctor.values.generation import GenerationParams
from proctor.values.providers.base_urls import parse_allowed
from services.common.errors import InvalidParameter
from services.scheduler.runs.orders.errors import BaseUrlNotAllowed, CannotAskElsewhere
from services.scheduler.runs.orders.provider_rules import refuse_unfit
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.suite import Generation, TaskDefinition
from tests.fakes.pools import model_pool, provider_pool
from tests.fakes.suites.toy_suites import ToyCatalogue

ORDER = RunOrder("toy", "any/model")
POOLS = {
    "vllm": model_pool("local", "vllm/starter"),
    "openai": provider_pool("remote", base_url="https://api.openai.com/v1"),
    "grok": provider_pool("grok", provider="grok", base_url="https://api.x.ai/v1"),
    "server": provider_pool("server", base_url="http://127.0.0.1:8000/v1"),
    **{name: provider_pool(name, name, name) for name in ("ollama", "gemini", "anthropic")},
}
TAKEN_BY_ALL = GenerationParams(temperature=1.0, max_tokens=100, provider_params={"min_p": 0.1})


async def tasks(**generation: Any) -> tuple[TaskDefinition, ...]:
    """The one that generates sets this itself."""
    choose, say = (await ToyCatalogue().suite("toy")).tasks
    return choose, replace(say, generation=Generation(**generation))


@pytest.mark.parametrize("pool", POOLS)
async def test_what_every_provider_takes_is_taken(pool: str) -> None:
    refuse_unfit(replace(ORDER, params=TAKEN_BY_ALL), await tasks(), POOLS[pool])


@pytest.mark.parametrize(
    ("pool", "params", "words"),
    [
        ("anthropic", {"top_p": 0.5}, "Anthropic takes no top_p; leave it out of the run's parameters."),
        ("anthropic", {"seed": 1}, "Anthropic takes no seed;"),
        ("anthropic", {"temperature": 0.7}, "Anthropic takes no temperature;"),
        ("anthropic", {"temperature": 0.0}, "Anthropic takes no temperature;"),
        ("anthropic", {"top_p": 0.0}, "Anthropic takes no top_p;"),
        ("anthropic", {"provider_params": {"stop_sequences": ["x"]}}, "provider_params has stop_sequences"),
        ("gemini", {"provider_params": {"maxOutputTokens": 1}}, "provider_params has maxOutputTokens, but"),
        ("gemini", {"provider_params": {"max_output_tokens": 1}}, "provider_params has max_output_tokens"),
        ("gemini", {"provider_params": {"stopSequences": ["x"]}}, "provider_params has stopSequences, but"),
        ("gemini", {"provider_params": {"candidateCount": 8}}, "provider_params has candidateCount, but"),
        ("ollama", {"provider_params": {"num_predict": 1}}, "provider_params has num_predict, but Proctor"),
        ("gemini", {"repetition_penalty": 1.1}, "Gemini takes no repetition_penalty (repeat_penalty);"),
        ("gemini", {"context_tokens": 4096}, "Gemini takes no context_tokens (num_ctx);"),
        ("gemini", {"top_k": 0}, "Gemini refuses this: top_k is 0, but must be at least 1."),
        ("gemini", {"seed": 2**31}, "must be at least 0 and at most 2147483548."),
        ("openai", {"top_k": 5}, "OpenAI takes no top_k;"),
        ("grok", {"repetition_penalty": 1.1}, "xAI takes no repetition_penalty"),
        ("server", {"context_tokens": 4096}, "A server behind the OpenAI protocol takes no context_tokens"),
        ("vllm", {"context_tokens": 4096}, "The vLLM engine takes no context_tokens"),
        ("vllm", {"provider_params": {"mirostat": 1}}, "does not know the parameter mirostat. Of its own"),
        ("vllm", {"provider_params": {"min_p": 1.5}}, "min_p is 1.5, but must be at least 0 and at most 1."),
        ("vllm", {"provider_params": {"min_p": "low"}}, "min_p must be a number."),
    ],
)
async def test_parameter_that_a_provider_does_not_take_is_refused(
    pool: str, params: dict[str, Any], words: str
) -> None:
    order = replace(ORDER, params=GenerationParams(**params))
    with pytest.raises(InvalidParameter) as raised:
        refuse_unfit(order, await tasks(), POOLS[pool])
    assert words in raised.value.message
    assert str(raised.value.facts["field"]).startswith("order.")


async def test_top_p_of_0_is_greedy_and_so_taken() -> None:
    refuse_unfit(replace(ORDER, params=GenerationParams(top_p=0.0)), await tasks(), POOLS["openai"])


async def test_temperature_of_0_of_a_task_runs_where_a_provider_takes_none() -> None:
    refuse_unfit(ORDER, await tasks(temperature=0.0), POOLS["anthropic"])


async def test_what_a_task_sets_itself_is_refused_by_the_name_of_the_task() -> None:
    with pytest.raises(InvalidParameter, match="Task say sets top_p, which Anthropic does not take"):
        refuse_unfit(ORDER, await tasks(top_p=0.9), POOLS["anthropic"])
    refuse_unfit(ORDER, await tasks(top_p=0.9, temperature=0.7), POOLS["gemini"])
    ordered = replace(ORDER, params=GenerationParams(temperature=1.0))
    refuse_unfit(ordered, await tasks(temperature=0.7), POOLS["anthropic"])


async def test_server_of_an_order_is_asked_only_where_an_operator_allowed_it() -> None:
    order = replace(ORDER, base_url="http://inside:8000/v1")
    refuse_unfit(order, await tasks(), POOLS["server"], parse_allowed("http://inside:8000"))
    with pytest.raises(BaseUrlNotAllowed, match="PROCTOR_ALLOWED_BASE_URLS"):
        refuse_unfit(order, await tasks(), POOLS["server"])
    with pytest.raises(CannotAskElsewhere) as refused:
        refuse_unfit(order, await tasks(), POOLS["gemini"])
    assert refused.value.facts == {"pool": "gemini", "engine": "gemini"}


async def test_server_of_an_order_with_a_password_is_refused_without_repeating_it() -> None:
    order = replace(ORDER, base_url="http://me:secret@inside:8000/v1")
    with pytest.raises(InvalidParameter, match="base_url must be a plain address") as raised:
        refuse_unfit(order, await tasks(), POOLS["server"])
    assert "secret" not in f"{raised.value.message} {raised.value.facts}"


async def test_server_of_an_order_is_asked_by_its_own_rules() -> None:
    order = replace(ORDER, params=GenerationParams(top_k=5), base_url="http://inside:8000/v1")
    refuse_unfit(order, await tasks(), POOLS["openai"], parse_allowed("http://inside:8000"))
