"""Pools: which serves a model, which models there are, and the file that says so."""

from dataclasses import replace
from pathlib import Path

import pytest

from services.scheduler.runs.orders.run_order import PromptForm, ScoringMethod
from services.scheduler.workers.base_urls import parse_allowed
from services.scheduler.workers.errors import InvalidAllowedBaseUrls, InvalidPoolsFile
from services.scheduler.workers.pool import Pool, pool_serving, supported_providers
from services.scheduler.workers.yaml_pools import read_pools

ALL = tuple(ScoringMethod)
LOCAL = Pool("local", "vllm", 256, models=("vllm/starter",), can=frozenset(ALL))
REMOTE = Pool("remote", "openai", 64, provider="openai")
ANY_VLLM = Pool("big", "openai", 64, provider="vllm")


def test_listed_model_goes_to_the_pool_that_lists_it() -> None:
    assert pool_serving("vllm/starter", [ANY_VLLM, LOCAL]) is LOCAL
    assert pool_serving("vllm/other", [LOCAL, ANY_VLLM]) is ANY_VLLM


def test_provider_pool_serves_any_name_but_not_none() -> None:
    assert pool_serving("openai/a/b", [REMOTE]) is REMOTE
    assert pool_serving("openai/", [REMOTE]) is None
    assert pool_serving("openai", [REMOTE]) is None


def test_providers_are_those_of_all_pools() -> None:
    assert supported_providers([LOCAL, REMOTE]) == ("openai", "vllm")


def test_pools_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "pools.yaml"
    file.write_text(
        "pools:\n"
        "  - {name: local, engine: vllm, concurrency: 256, models: [{name: vllm/starter, path: /m}]}\n"
        "  - {name: remote, engine: openai, concurrency: 64, provider: openai, base_url: 'http://x'}\n"
    )
    assert read_pools(file) == (LOCAL, replace(REMOTE, base_url="http://x"))
    local, remote = read_pools(file, "http://inside:8000/v1")
    assert (local.may_ask, remote.may_ask) == ((), parse_allowed("http://inside:8000/v1"))


@pytest.mark.parametrize("allowed", ["inside:8000", "http://inside/v1,http://me:secret@inside"])
def test_list_of_allowed_servers_with_an_odd_one_keeps_the_scheduler_from_starting(
    tmp_path: Path, allowed: str
) -> None:
    with pytest.raises(
        InvalidAllowedBaseUrls, match="PROCTOR_SCHEDULER_ALLOWED_BASE_URLS cannot be"
    ) as raised:
        read_pools(tmp_path / "pools.yaml", allowed)
    assert "secret" not in raised.value.message


def remote(more: str) -> str:
    return f"pools: [{{name: a, engine: openai, provider: x{more}}}]"


@pytest.mark.parametrize(
    ("more", "methods"),
    [
        ("", (ScoringMethod.LOGLIKELIHOOD, ScoringMethod.GENERATE)),
        (", constrained_field: guided_choice", ALL),
        (", can: [generate]", (ScoringMethod.GENERATE,)),
        (
            ", can: [constrained, generate], constrained_field: response_format",
            (ScoringMethod.GENERATE, ScoringMethod.CONSTRAINED),
        ),
    ],
)
def test_file_says_how_a_server_can_score_choices(
    tmp_path: Path, more: str, methods: tuple[ScoringMethod, ...]
) -> None:
    file = tmp_path / "pools.yaml"
    file.write_text(remote(more))
    [pool] = read_pools(file)
    assert pool.scoring_methods(None) == methods


@pytest.mark.parametrize(
    ("engine", "can_complete", "methods"),
    [
        ("vllm", True, ALL),
        ("openai", True, ALL[:2]),
        ("ollama", True, ALL[1:]),
        ("gemini", False, ALL[1:]),
        ("anthropic", False, (ScoringMethod.GENERATE,)),
    ],
)
def test_engine_tells_what_a_pool_can_where_the_file_does_not(
    tmp_path: Path, engine: str, *, can_complete: bool, methods: tuple[ScoringMethod, ...]
) -> None:
    file = tmp_path / "pools.yaml"
    file.write_text(f"pools: [{{name: a, engine: {engine}, provider: x}}]")
    [pool] = read_pools(file)
    assert (pool.can_complete, pool.scoring_methods(None)) == (can_complete, methods)


def test_text_after_a_chat_is_scored_by_an_engine_in_the_worker_only() -> None:
    assert LOCAL.scoring_methods(PromptForm.CHAT) == ALL
    assert REMOTE.scoring_methods(PromptForm.COMPLETION) == ALL[:2]
    assert REMOTE.scoring_methods(PromptForm.CHAT) == (ScoringMethod.GENERATE,)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "No such file"),
        ("pools: [", "while parsing"),
        ("pool: []", "it has no list named pools"),
        ("pools: [{engine: vllm, models: [{name: a/b}]}]", "name is missing"),
        ("pools: [{name: a, engine: vllm}]", "pool a has neither models nor a provider"),
        (remote(", can: [guess]"), "can of pool a lists something else than loglikelihood, generate, const"),
        (remote(", can: generate"), "can of pool a lists something else"),
        (remote(", can: 7"), "can of pool a lists something else"),
        (remote(", can: [loglikelihood]"), "can of pool a leaves out generate"),
        (remote(", can: [generate, constrained]"), "constrained, but constrained_field is missing"),
        (
            "pools: [{name: a, engine: gemini, provider: x, can: [generate, loglikelihood]}]",
            "can of pool a lists loglikelihood, which the engine gemini cannot do",
        ),
        (
            "pools: [{name: a, engine: magic, provider: x}]",
            "pool a names the engine magic; known: vllm, openai, ollama, gemini, anthropic",
        ),
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
