"""Names and aliases of models, and their part of the pools file."""

from pathlib import Path

import pytest

from proctor.values.providers.pool import Pool
from services.common.errors import InvalidSetting
from services.scheduler.workers.model_names import full_name, model_named, names_for
from services.scheduler.workers.yaml_pools import read_pools
from tests.fakes.pools import model_pool, provider_pool

LOCAL = model_pool("local", "vllm/Qwen/Qwen3-8B", "vllm/starter")
OTHER = model_pool("other", "ours/starter")
OPENAI = provider_pool("remote")
GROK = provider_pool("grok", provider="grok")
ALIASES = {"gpt-4o": "vllm/starter", "small": "vllm/starter"}


def test_alias_stands_for_its_model_and_any_other_name_for_itself() -> None:
    assert full_name("small", ALIASES) == "vllm/starter"
    assert full_name("vllm/starter", ALIASES) == "vllm/starter"


def test_lines_may_say_the_name_in_full_without_provider_or_an_alias() -> None:
    assert names_for("vllm/starter", ALIASES) == {"vllm/starter", "starter", "gpt-4o", "small"}
    assert names_for("vllm/Qwen/Qwen3-8B", ALIASES) == {"vllm/Qwen/Qwen3-8B", "Qwen/Qwen3-8B"}


@pytest.mark.parametrize(
    ("name", "pools", "model"),
    [
        ("vllm/starter", [LOCAL], "vllm/starter"),
        ("openai/gpt-4o", [LOCAL, OPENAI], "openai/gpt-4o"),
        ("gpt-4o", [LOCAL, OPENAI], "vllm/starter"),
        ("starter", [LOCAL, OPENAI], "vllm/starter"),
        ("Qwen/Qwen3-8B", [LOCAL, OPENAI, GROK], "vllm/Qwen/Qwen3-8B"),
        ("starter", [LOCAL, OTHER, OPENAI], None),
        ("o3", [LOCAL, OPENAI], "openai/o3"),
        ("meta/o3", [LOCAL, OPENAI], "openai/meta/o3"),
        ("o3", [LOCAL, OPENAI, GROK], None),
        ("o3", [LOCAL], None),
        ("", [OPENAI], None),
    ],
)
def test_bare_name_is_reported_where_only_one_model_can_be_meant(
    name: str, pools: list[Pool], model: str | None
) -> None:
    assert model_named(name, pools, ALIASES) == model


POOLS = "pools: [{name: a, engine: openai, concurrency: 8, provider: openai, base_url: http://127.0.0.1:9}]\n"


def aliases_of(folder: Path, written: str) -> dict[str, str]:
    file = folder / "pools.yaml"
    file.write_text(POOLS + written)
    return dict(read_pools(file).aliases)


def test_aliases_are_read_and_may_be_missing(tmp_path: Path) -> None:
    assert aliases_of(tmp_path, "aliases: {gpt-4o: openai/fake, other/name: openai/b}") == {
        "gpt-4o": "openai/fake",
        "other/name": "openai/b",
    }
    assert aliases_of(tmp_path, "") == {}


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("aliases: [a]", "aliases is not a list of NAME: PROVIDER/MODEL"),
        ("aliases: {a: vllm/none}", "the alias 'a' names vllm/none, which no pool serves"),
        ("aliases: {a: b, b: openai/x}", "the alias 'a' names b, which no pool serves"),
        ("aliases: {a: 1}", "the alias 'a' names 1, which no pool serves"),
        ("aliases: {openai/x: openai/y}", "the alias 'openai/x' is the name of a model itself"),
        ("aliases: {1: openai/y}", "the alias 1 is not a name"),
        ("aliases: {'': openai/y}", "the alias '' is not a name"),
        ("aliases: {' a': openai/y}", "the alias ' a' is not a name"),
        ('aliases: {"a\\nb": openai/y}', "is not a name"),
    ],
)
def test_alias_that_cannot_hold_keeps_the_scheduler_from_starting(
    tmp_path: Path, written: str, problem: str
) -> None:
    with pytest.raises(InvalidSetting) as raised:
        aliases_of(tmp_path, written)
    assert problem in raised.value.message
