"""The scheduler refuses the same orders as the worker's adapters, parameter by parameter."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from proctor.values.providers.rules import RULES, RULES_OF_HOST, ProviderRules
from services.scheduler.runs.orders.provider_rules import rules_of
from services.worker.engines.anthropic import api as anthropic_api
from services.worker.engines.engine import Sampling
from services.worker.engines.errors import RequestRefused
from services.worker.engines.gemini import api as gemini_api
from services.worker.engines.ollama import api as ollama_api
from services.worker.engines.openai.api import server_at
from services.worker.engines.row_params import refuse_parameters
from tests.fakes.pools import provider_pool

PLAIN = Sampling(max_tokens=8)
ORDERED = {
    "top_p": replace(PLAIN, top_p=0.5),
    "top_k": replace(PLAIN, top_k=5),
    "seed": replace(PLAIN, seed=5),
    "repetition_penalty": replace(PLAIN, repetition_penalty=1.1),
    "context_tokens": replace(PLAIN, context_tokens=4096),
}


def asked_at(base_url: str) -> Callable[[Sampling], None]:
    server = server_at(base_url)
    return lambda sampling: refuse_parameters(sampling, server.rules)


def asked_of_vllm(sampling: Sampling) -> None:
    refuse_parameters(sampling, RULES["vllm"])


ADAPTERS: dict[str, tuple[ProviderRules, Callable[[Sampling], object]]] = {
    "vllm": (RULES["vllm"], asked_of_vllm),
    "ollama": (RULES["ollama"], ollama_api.sampling_fields),
    "gemini": (RULES["gemini"], gemini_api.sampling_fields),
    "anthropic": (RULES["anthropic"], anthropic_api.sampling_fields),
    "openai": (RULES["openai"], asked_at("http://127.0.0.1:8000/v1")),
    **{host: (rules, asked_at(f"https://{host}/v1")) for host, rules in RULES_OF_HOST.items()},
}


@pytest.fixture(params=list(ADAPTERS))
def adapter(request: pytest.FixtureRequest) -> tuple[ProviderRules, Callable[[Sampling], object]]:
    return ADAPTERS[request.param]


def refusal_of(ask: Callable[[Sampling], object], sampling: Sampling) -> str:
    try:
        ask(sampling)
    except RequestRefused as refusal:
        return str(refusal)
    return ""


@pytest.mark.parametrize("name", ORDERED)
def test_parameter_is_refused_by_both_or_by_none(
    adapter: tuple[ProviderRules, Callable[[Sampling], object]], name: str
) -> None:
    rules, ask = adapter
    refusal = refusal_of(ask, ORDERED[name])
    assert bool(refusal) == (name in rules.unknown), refusal
    assert not refusal or refusal.startswith(f"{rules.name} takes no {name}")


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0, 2.0])
def test_temperature_is_refused_by_both_or_by_none(
    adapter: tuple[ProviderRules, Callable[[Sampling], object]], temperature: float
) -> None:
    rules, ask = adapter
    refusal = refusal_of(ask, replace(PLAIN, temperature=temperature))
    assert bool(refusal) == bool(rules.temperatures and temperature not in rules.temperatures)


def test_rules_name_no_parameter_that_there_is_not() -> None:
    for rules, _ in ADAPTERS.values():
        assert rules.unknown <= ORDERED.keys()


def test_server_that_an_order_names_is_held_to_its_own_rules() -> None:
    pool = provider_pool("remote", base_url="https://api.openai.com/v1")
    assert rules_of(pool).name == "OpenAI"
    assert rules_of(pool, "http://inside:8000/v1") is RULES["openai"]
