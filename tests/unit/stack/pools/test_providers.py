"""The pools of a stack that nobody has told which to have."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from proctor.stack.options import RemotePool
from proctor.stack.pools.file import read_pools_file, write_pools_file
from proctor.stack.pools.providers import REMOTE_PROVIDERS, remote_pool
from proctor.values.pools import ConstrainedField
from services.scheduler.runs.orders.run_order import ScoringMethod
from services.scheduler.workers.yaml_pools import read_pools
from services.worker.models.pools_file import read_pool


def pool_of(
    provider: str, base_url: str = "", environ: Mapping[str, str] = MappingProxyType({})
) -> RemotePool:
    known = REMOTE_PROVIDERS[provider]
    return remote_pool(known, base_url or known.base_url, environ)


@pytest.mark.parametrize(
    ("provider", "environ", "variable"),
    [
        ("grok", {}, "GROK_API_KEY"),
        ("grok", {"XAI_API_KEY": "x"}, "XAI_API_KEY"),
        ("grok", {"XAI_API_KEY": "x", "GROK_API_KEY": "y"}, "GROK_API_KEY"),
        ("gemini", {}, "GOOGLE_API_KEY"),
        ("gemini", {"GOOGLE_API_KEY": "", "GEMINI_API_KEY": "x"}, "GEMINI_API_KEY"),
        ("anthropic", {}, "ANTHROPIC_API_KEY"),
    ],
)
def test_key_is_that_of_the_first_variable_that_is_set(
    provider: str, environ: dict[str, str], variable: str
) -> None:
    assert pool_of(provider, environ=environ).api_key_env == variable


def test_chat_servers_are_known_not_to_score_given_texts() -> None:
    openai = pool_of("openai", "https://api.openai.com/v1/")
    grok = pool_of("grok", "https://proxy.example.org/v1")
    for pool in (openai, grok):
        assert (pool.can, pool.constrained_field) == (("generate", "constrained"), "response_format")
    unknown = pool_of("openai", "http://here/v1")
    assert (unknown.can, unknown.constrained_field) == ((), "")


def test_what_is_known_of_a_server_is_written_for_all_who_read_the_pools_file(tmp_path: Path) -> None:
    pools = (
        pool_of("openai", "https://api.openai.com/v1"),
        RemotePool("http://here/v1", name="here", provider="here"),
        pool_of("anthropic"),
    )
    file = write_pools_file(tmp_path / "pools.yaml", pools)
    assert read_pools_file(file) == pools
    openai, here, anthropic = read_pools(file)
    assert openai.scoring_methods(None) == (ScoringMethod.GENERATE, ScoringMethod.CONSTRAINED)
    assert here.scoring_methods(None) == (ScoringMethod.LOGLIKELIHOOD, ScoringMethod.GENERATE)
    assert anthropic.scoring_methods(None) == (ScoringMethod.GENERATE,)
    provider = read_pool(file, "remote-openai").provider
    assert provider is not None
    assert provider.constrained_field is ConstrainedField.RESPONSE_FORMAT


@pytest.mark.parametrize("name", sorted(REMOTE_PROVIDERS))
def test_worker_and_scheduler_read_the_pool_of_every_provider(tmp_path: Path, name: str) -> None:
    file = write_pools_file(tmp_path / "pools.yaml", (pool_of(name, "http://here/v1"),))
    assert read_pool(file, f"remote-{name}").engine == read_pools(file)[0].engine
