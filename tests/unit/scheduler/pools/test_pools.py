"""Pools: which serves a model, which models there are, and the file that says so."""

from pathlib import Path

import pytest

from services.scheduler.errors import InvalidPoolsFile
from services.scheduler.pools.pool import Pool, Worker, models_of, pool_of, supported_providers
from services.scheduler.pools.yaml_pools import read_pools

LOCAL = Pool("local", "vllm", 256, models=("vllm/starter",))
REMOTE = Pool("remote", "openai", 64, provider="openai")
ANY_VLLM = Pool("big", "openai", 64, provider="vllm")


def test_listed_model_goes_to_the_pool_that_lists_it() -> None:
    assert pool_of("vllm/starter", [ANY_VLLM, LOCAL]) is LOCAL
    assert pool_of("vllm/other", [LOCAL, ANY_VLLM]) is ANY_VLLM


def test_provider_pool_serves_any_name_but_not_none() -> None:
    assert pool_of("openai/a/b", [REMOTE]) is REMOTE
    assert pool_of("openai/", [REMOTE]) is None
    assert pool_of("openai", [REMOTE]) is None


def test_providers_are_those_of_all_pools() -> None:
    assert supported_providers([LOCAL, REMOTE]) == ("openai", "vllm")


def test_models_are_listed_and_told_of_by_workers() -> None:
    worker = Worker("w", "remote", "openai", "openai", models=("openai/b", "openai/a"))
    loaded = Worker("v", "local", "vllm", "vllm", loaded_model="vllm/starter")
    models = models_of([LOCAL, REMOTE], [worker, loaded])
    assert [(model.name, model.is_loaded) for model in models] == [
        ("openai/a", False),
        ("openai/b", False),
        ("vllm/starter", True),
    ]
    assert [model.name for model in models_of([LOCAL, REMOTE], [worker], "vllm")] == ["vllm/starter"]


def test_pools_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "pools.yaml"
    file.write_text(
        "pools:\n"
        "  - {name: local, engine: vllm, concurrency: 256, models: [{name: vllm/starter, path: /m}]}\n"
        "  - {name: remote, engine: openai, concurrency: 64, provider: openai, base_url: 'http://x'}\n"
    )
    assert read_pools(file) == (LOCAL, REMOTE)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "No such file"),
        ("pools: [", "while parsing"),
        ("pool: []", "it has no list named pools"),
        ("pools: [{engine: vllm, models: [{name: a/b}]}]", "name is missing"),
        ("pools: [{name: a, engine: vllm}]", "pool a has neither models nor a provider"),
        ("pools: [{name: 'a.b', engine: vllm, provider: x}]", "may only have letters"),
    ],
)
def test_bad_pools_file_is_refused_with_its_name_and_problem(
    tmp_path: Path, content: str | None, problem: str
) -> None:
    file = tmp_path / "pools.yaml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InvalidPoolsFile, match=problem) as refusal:
        read_pools(file)
    assert str(file) in refusal.value.message
