"""The worker's pool from the pools file, or one clear sentence."""

from pathlib import Path

import pytest

from proctor.values.pools import ConstrainedField, Pool
from proctor.values.scoring import ScoringMethod
from services.worker.models.errors import PoolsFileInvalid, UnknownPool
from services.worker.models.pools_file import read_pool

LOGLIKELIHOOD = ScoringMethod.LOGLIKELIHOOD
POOLS = """
pools:
  - name: local
    engine: vllm
    concurrency: 256
    models: [{name: vllm/starter, path: /models/starter, engine_args: {max_model_len: 1024}}]
  - name: remote
    engine: openai
    concurrency: 64
    provider: openai
    base_url: "http://127.0.0.1:18080/v1"
    api_key_env: OPENAI_API_KEY
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "pools.yaml"
    path.write_text(text)
    return path


def with_url(url: str) -> str:
    return f"pools: [{{name: p, engine: openai, concurrency: 1, provider: x, base_url: '{url}'}}]"


def test_a_pool_of_models_and_a_pool_of_a_provider(tmp_path: Path) -> None:
    path = write(tmp_path, POOLS)
    local, remote = read_pool(path, "local"), read_pool(path, "remote")
    assert (local.groups, local.provider_name, local.completes_text) == ((("vllm/starter",),), "vllm", True)
    assert local.models[0].engine_args == {"max_model_len": 1024}
    assert remote.provider is not None
    assert (remote.provider.base_url, remote.provider.api_key_env) == (
        "http://127.0.0.1:18080/v1",
        "OPENAI_API_KEY",
    )
    assert (remote.concurrency, remote.models, remote.completes_text) == (64, (), False)


def remote(more: str = "") -> str:
    return f"pools: [{{name: p, engine: openai, concurrency: 1, provider: x, base_url: 'http://x/v1'{more}}}]"


def of_engine(engine: str, method: str) -> str:
    return remote(f", can: [generate, {method}]").replace("engine: openai", f"engine: {engine}")


def test_a_server_constrains_where_the_file_names_the_field(tmp_path: Path) -> None:
    def pool(more: str) -> Pool:
        return read_pool(write(tmp_path, remote(more)), "p")

    silent = pool("")
    assert (LOGLIKELIHOOD in silent.can, silent.constrained_field) == (True, None)
    named = pool(", constrained_field: guided_choice")
    assert (LOGLIKELIHOOD in named.can, named.constrained_field) == (True, ConstrainedField.GUIDED_CHOICE)
    chat_only = pool(", can: [generate, constrained], constrained_field: response_format")
    assert LOGLIKELIHOOD not in chat_only.can
    assert chat_only.constrained_field is ConstrainedField.RESPONSE_FORMAT
    assert pool(", can: [generate], constrained_field: guided_choice").constrained_field is None


def of_models(*entries: str) -> str:
    return f"pools: [{{name: p, engine: vllm, concurrency: 1, models: [{', '.join(entries)}]}}]"


BASE = "{name: vllm/base, path: /b, engine_args: {seed: 1}}"


def test_adapters_share_the_engine_of_their_base_and_others_have_their_own(tmp_path: Path) -> None:
    text = of_models(
        BASE,
        "{name: vllm/a, lora: /a, base: vllm/base}",
        "{name: vllm/else, path: /b}",
        "{name: vllm/c, lora: /c, base: owner/hub, engine_args: {seed: 2}}",
        "{name: vllm/d, lora: /d, base: owner/hub, engine_args: {seed: 2}}",
    )
    pool = read_pool(write(tmp_path, text), "p")
    assert pool.groups == (("vllm/base", "vllm/a"), ("vllm/else",), ("vllm/c", "vllm/d"))
    adapter = pool.models[1]
    assert (adapter.path, adapter.lora, adapter.engine_args) == ("/b", "/a", {"seed": 1})


def test_an_unknown_pool_is_reported_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownPool, match="has no pool gpu; it has: local, remote"):
        read_pool(write(tmp_path, POOLS), "gpu")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pools: [", "expected the node content"),
        ("- 1", "no list `pools`"),
        ("pools: [{name: p, engine: vllm}]", "pool p has no 'concurrency'"),
        ("pools: [{name: 'a.b', engine: vllm, concurrency: 1}]", "no NATS subject can carry"),
        (
            "pools: [{name: p, engine: magic, concurrency: 1}]",
            "names the engine magic; known: vllm, openai, ollama",
        ),
        ("pools: [{name: p, engine: vllm, concurrency: 0}]", "has a concurrency below 1"),
        ("pools: [{name: p, engine: vllm, concurrency: many}]", "invalid literal"),
        ("pools: [{name: p, engine: vllm, concurrency: 1}]", "lists no models"),
        (of_models(BASE, BASE), "lists the model vllm/base twice"),
        (of_models("{name: vllm/a, lora: /a}"), "must say the base of the adapter vllm/a"),
        (of_models("{name: vllm/a, lora: /a, path: /b}"), "must say the base of the adapter vllm/a"),
        (of_models("{name: vllm/a, path: /a, base: /b}"), "a base, which only an adapter (lora) has"),
        (
            of_models(BASE, "{name: vllm/a, lora: /a, base: vllm/base, engine_args: {seed: 2}}"),
            "gives the adapter vllm/a engine_args; they belong to its base vllm/base",
        ),
        ("pools: [{name: p, engine: openai, concurrency: 1}]", "names no provider"),
        ("pools: [{name: p, engine: openai, concurrency: 1, provider: x}]", "has no 'base_url'"),
        (remote(", can: [guess]"), "can lists something else than loglikelihood, generate, constrained"),
        (remote(", can: generate"), "can lists something else than"),
        (remote(", can: 7"), "can lists something else than"),
        (remote(", can: [loglikelihood]"), "can leaves out generate"),
        ("pools: [{name: p, engine: gemini, concurrency: 1}]", "names no provider"),
        (of_engine("gemini", "loglikelihood"), "can lists loglikelihood, but the engine gemini has generate"),
        (of_engine("anthropic", "constrained"), "can lists constrained, but the engine anthropic has gener"),
        (remote(", can: [generate, constrained]"), "no constrained_field (structured_outputs, guided"),
        (remote(", constrained_field: regex"), "constrained_field is regex; known: structured_outputs, gu"),
        (with_url("localhost:9999/v1"), "has a base_url that is no http:// or https:// address"),
        (with_url("ftp://host/v1"), "has a base_url that is no http:// or https:// address"),
        (with_url("http:///v1"), "has a base_url that is no http:// or https:// address"),
        (with_url("http://host:99999/v1"), "has a base_url that is no http:// or https:// address"),
        (with_url("http://[host/v1"), "has a base_url that is no http:// or https:// address"),
    ],
)
def test_an_unusable_file_is_reported_in_one_sentence(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(PoolsFileInvalid) as caught:
        read_pool(write(tmp_path, text), "a.b" if "a.b" in text else "p")
    assert problem in caught.value.message
    assert "\n" not in caught.value.message


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PoolsFileInvalid, match="No such file"):
        read_pool(tmp_path / "none.yaml", "p")
