"""Pools: which serves a model, which models there are, and the file that says so."""

from pathlib import Path

import pytest

from proctor.values.providers.pool import pool_serving
from proctor.values.providers.pools_file import PoolsFile
from proctor.values.scoring import PromptForm, ScoringMethod
from services.common.errors import InvalidSetting
from services.scheduler.workers.model_names import supported_providers
from services.scheduler.workers.yaml_pools import read_allowed_base_urls, read_pools
from tests.fakes.pools import model_pool, provider_pool

ALL = tuple(ScoringMethod)
LOCAL = model_pool("local", "vllm/starter", concurrency=256)
REMOTE = provider_pool("remote")
ANY_VLLM = provider_pool("big", provider="vllm")


def test_listed_model_goes_to_the_pool_that_lists_it() -> None:
    assert pool_serving("vllm/starter", [ANY_VLLM, LOCAL]) is LOCAL
    assert pool_serving("vllm/other", [LOCAL, ANY_VLLM]) is ANY_VLLM


def test_provider_pool_serves_any_name_but_not_none() -> None:
    assert pool_serving("openai/a/b", [REMOTE]) is REMOTE
    assert pool_serving("openai/", [REMOTE]) is None
    assert pool_serving("openai", [REMOTE]) is None


def test_providers_are_those_of_all_pools() -> None:
    assert supported_providers([LOCAL, REMOTE]) == ("openai", "vllm")


FILE = (
    "pools:\n"
    "  - {name: local, engine: vllm, concurrency: 256, models: [{name: vllm/starter, path: /m}]}\n"
    "  - {name: remote, engine: openai, concurrency: 64, provider: openai, base_url: 'http://127.0.0.1:9/v1'}\n"
    "aliases: {ours: vllm/starter}\n"
)


def test_pools_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "pools.yaml"
    file.write_text(FILE)
    assert read_pools(file) == PoolsFile((LOCAL, REMOTE), {"ours": "vllm/starter"})


@pytest.mark.parametrize("allowed", ["inside:8000", "http://inside/v1,http://me:secret@inside"])
def test_list_of_allowed_servers_with_an_odd_one_keeps_the_scheduler_from_starting(allowed: str) -> None:
    with pytest.raises(InvalidSetting, match="PROCTOR_ALLOWED_BASE_URLS cannot be") as raised:
        read_allowed_base_urls(allowed)
    assert "secret" not in raised.value.message


def test_text_after_a_chat_is_scored_by_an_engine_in_the_worker_only() -> None:
    assert LOCAL.methods_for(PromptForm.CHAT) == ALL
    assert REMOTE.methods_for(PromptForm.COMPLETION) == ALL[:2]
    assert REMOTE.methods_for(PromptForm.CHAT) == (ScoringMethod.GENERATE,)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "No such file"),
        ("pools: [", "while parsing"),
        ("pool: []", "it has no list `pools`"),
        (
            FILE.replace("vllm/starter}", "nowhere/x}"),
            "the alias 'ours' names nowhere/x, which no pool serves",
        ),
        (FILE.replace("engine: openai", "engine: magic"), "names the engine magic; known: vllm, openai"),
    ],
)
def test_bad_pools_file_is_refused_with_its_name_and_problem(
    tmp_path: Path, content: str | None, problem: str
) -> None:
    file = tmp_path / "pools.yaml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InvalidSetting, match=problem) as refusal:
        read_pools(file)
    assert str(file) in refusal.value.message
