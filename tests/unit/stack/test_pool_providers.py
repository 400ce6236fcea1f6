"""The pools of known providers, as the scheduler and the workers read them."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from proctor.stack.options import remote_pool
from proctor.stack.pools import asks_any_server, choose_model, pool_of, write_pools_file
from proctor.values.providers.pool import ConstrainedField, Pool, Provider
from proctor.values.providers.pools_file import PoolsFile, parse_pools
from proctor.values.providers.remote_providers import REMOTE_PROVIDERS
from proctor.values.scoring import ScoringMethod
from services.scheduler.workers.yaml_pools import read_pools
from services.worker.engines.yaml_pools import read_pool


def known_pool(provider: str, base_url: str = "", environ: Mapping[str, str] = MappingProxyType({})) -> Pool:
    known = REMOTE_PROVIDERS[provider]
    return pool_of(known, base_url or known.base_url, environ)


def key_of(pool: Pool) -> str:
    return pool.provider.api_key_env if pool.provider else ""


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
    assert key_of(known_pool(provider, environ=environ)) == variable


def test_chat_servers_are_known_not_to_score_given_texts() -> None:
    openai = known_pool("openai", "https://api.openai.com/v1/")
    grok = known_pool("grok", "https://proxy.example.org/v1")
    for pool in (openai, grok):
        assert pool.scoring_methods == {ScoringMethod.GENERATE, ScoringMethod.CONSTRAINED}
        assert pool.constrained_field is ConstrainedField.RESPONSE_FORMAT
    unknown = known_pool("openai", "http://here/v1")
    assert unknown.scoring_methods == {ScoringMethod.LOGLIKELIHOOD, ScoringMethod.GENERATE}
    assert unknown.constrained_field is None


@pytest.mark.parametrize(
    ("model", "base_url", "is_any"),
    [
        ("openai/a", "http://127.0.0.1:8000/v1", True),
        ("openai/a", "https://api.openai.com/v1/", False),
        ("grok/a", "http://127.0.0.1:8000/v1", False),
        ("vllm/someone/a", "http://127.0.0.1:8000/v1", False),
    ],
)
def test_server_behind_the_protocol_of_openai_may_be_any(model: str, base_url: str, *, is_any: bool) -> None:
    environ = {"OPENAI_BASE_URL": base_url, "GROK_BASE_URL": base_url}
    assert asks_any_server(choose_model(model), environ) is is_any


def test_what_is_known_of_a_server_is_written_for_all_who_read_the_pools_file(tmp_path: Path) -> None:
    pools = (
        known_pool("openai", "https://api.openai.com/v1"),
        remote_pool(Provider("here", "http://here/v1"), name="here"),
        known_pool("anthropic"),
    )
    file = write_pools_file(tmp_path / "pools.yaml", PoolsFile(pools))
    assert parse_pools(file.read_text()).pools == pools
    methods = [list(map(str, pool.methods_for(None))) for pool in read_pools(file).pools]
    assert methods == [["generate", "constrained"], ["loglikelihood", "generate"], ["generate"]]
    provider = read_pool(file, "remote-openai").provider
    assert provider is not None
    assert provider.constrained_field is ConstrainedField.RESPONSE_FORMAT


@pytest.mark.parametrize("name", sorted(REMOTE_PROVIDERS))
def test_worker_and_scheduler_read_the_pool_of_every_provider(tmp_path: Path, name: str) -> None:
    file = write_pools_file(tmp_path / "pools.yaml", PoolsFile((known_pool(name, "http://here/v1"),)))
    assert read_pool(file, f"remote-{name}").engine == read_pools(file).pools[0].engine
