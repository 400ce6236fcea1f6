"""The pools file as it is read and written, or one clear sentence."""

from dataclasses import replace

import pytest

from proctor.values.providers.errors import InvalidPools, UnknownPool
from proctor.values.providers.pool import ConstrainedField, Provider, pool_serving
from proctor.values.providers.pools_file import PoolsFile, format_pools, parse_pool, parse_pools
from proctor.values.scoring import PromptForm, ScoringMethod

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


ALL = tuple(ScoringMethod)


def with_url(url: str) -> str:
    return f"pools: [{{name: p, engine: openai, concurrency: 1, provider: x, base_url: '{url}'}}]"


def test_a_pool_of_models_and_a_pool_of_a_provider() -> None:
    local, remote = parse_pools(POOLS).pools
    assert (local, remote) == (parse_pool(POOLS, "local"), parse_pool(POOLS, "remote"))
    assert (local.provider_name, local.providers, local.completes_text) == ("vllm", frozenset({"vllm"}), True)
    assert (local.models[0].name, local.models[0].engine_args) == ("vllm/starter", {"max_model_len": 1024})
    assert remote.provider is not None
    assert (remote.base_url, remote.provider.api_key_env) == ("http://127.0.0.1:18080/v1", "OPENAI_API_KEY")
    assert (remote.concurrency, remote.models, remote.completes_text) == (64, (), False)


def remote(more: str = "") -> str:
    return f"pools: [{{name: p, engine: openai, concurrency: 1, provider: x, base_url: 'http://x/v1'{more}}}]"


def of_engine(engine: str, method: str) -> str:
    return remote(f", scoring_methods: [generate, {method}]").replace("engine: openai", f"engine: {engine}")


def test_a_server_constrains_where_the_file_names_the_field() -> None:
    silent = parse_pool(remote(), "p")
    assert silent.constrained_field is None
    named = parse_pool(remote(", constrained_field: guided_choice"), "p")
    assert (named.scoring_methods, named.constrained_field) == (
        frozenset(ALL),
        ConstrainedField.GUIDED_CHOICE,
    )
    more = ", scoring_methods: [generate, constrained], constrained_field: response_format"
    chat_only = parse_pool(remote(more), "p")
    assert chat_only.constrained_field is ConstrainedField.RESPONSE_FORMAT
    assert ScoringMethod.LOGLIKELIHOOD not in chat_only.scoring_methods
    withheld = parse_pool(remote(", scoring_methods: [generate], constrained_field: guided_choice"), "p")
    assert withheld.constrained_field is None


@pytest.mark.parametrize(
    ("more", "methods"),
    [
        ("", ALL[:2]),
        (", constrained_field: guided_choice", ALL),
        (", scoring_methods: [generate]", ALL[1:2]),
        (", scoring_methods: [constrained, generate], constrained_field: response_format", ALL[1:]),
    ],
)
def test_a_file_says_how_a_server_can_score_choices(more: str, methods: tuple[ScoringMethod, ...]) -> None:
    assert parse_pool(remote(more), "p").methods_for(None) == methods


@pytest.mark.parametrize(
    ("engine", "can_complete", "methods"),
    [
        ("openai", True, ALL[:2]),
        ("ollama", True, ALL[1:]),
        ("gemini", False, ALL[1:]),
        ("anthropic", False, ALL[1:2]),
    ],
)
def test_an_engine_says_what_a_pool_can_where_the_file_does_not(
    engine: str, *, can_complete: bool, methods: tuple[ScoringMethod, ...]
) -> None:
    pool = parse_pool(remote().replace("engine: openai", f"engine: {engine}"), "p")
    assert (pool.can_complete, pool.methods_for(None)) == (can_complete, methods)


def test_text_after_a_chat_is_scored_by_an_engine_in_the_worker_only() -> None:
    local, remote = parse_pools(POOLS).pools
    assert local.methods_for(PromptForm.CHAT) == ALL
    assert remote.methods_for(PromptForm.COMPLETION) == ALL[:2]
    assert remote.methods_for(PromptForm.CHAT) == ALL[1:2]


def test_a_model_that_is_listed_is_served_by_its_own_pool() -> None:
    local, remote = parse_pools(POOLS).pools
    everything = replace(remote, name="all", provider=Provider("vllm", "http://x"))
    assert pool_serving("vllm/starter", [everything, local]) is local
    assert pool_serving("vllm/other", [everything, local]) is everything
    assert pool_serving("openai/a/b", [local, remote]) is remote
    assert pool_serving("openai/", [remote]) is pool_serving("openai", [remote]) is None


@pytest.mark.parametrize(
    "more",
    [
        "",
        ", scoring_methods: [generate]",
        ", constrained_field: guided_choice",
        ", max_tokens_field: max_completion_tokens",
    ],
)
def test_a_file_that_is_written_is_read_as_it_was(more: str) -> None:
    file = PoolsFile((*parse_pools(POOLS).pools, parse_pool(remote(more), "p")), {"best": "vllm/starter"})
    assert parse_pools(format_pools(file)) == file


def test_adapters_that_are_written_share_their_engine_again() -> None:
    text = of_models(BASE, "{name: vllm/a, lora: /a, base: vllm/base}")
    pool = parse_pool(text, "p")
    assert parse_pools(format_pools(PoolsFile((pool,)))).pools[0].groups == pool.groups


@pytest.mark.parametrize(
    ("aliases", "problem"),
    [
        ("[a]", "aliases is not a list of NAME: PROVIDER/MODEL"),
        ("{'': vllm/starter}", "the alias '' is not a name of 1 to 512 characters"),
        ("{vllm/starter: openai/x}", "the alias 'vllm/starter' is the name of a model itself"),
        ("{best: vllm/gone}", "the alias 'best' names vllm/gone, which no pool serves"),
    ],
)
def test_an_alias_that_cannot_be_used_is_reported(aliases: str, problem: str) -> None:
    with pytest.raises(InvalidPools, match=problem):
        parse_pools(f"{POOLS}aliases: {aliases}\n")


def of_models(*entries: str) -> str:
    return f"pools: [{{name: p, engine: vllm, concurrency: 1, models: [{', '.join(entries)}]}}]"


BASE = "{name: vllm/base, path: /b, engine_args: {seed: 1}}"


def test_adapters_share_the_engine_of_their_base_and_others_have_their_own() -> None:
    text = of_models(
        BASE,
        "{name: vllm/a, lora: /a, base: vllm/base}",
        "{name: vllm/else, path: /b}",
        "{name: vllm/c, lora: /c, base: owner/hub, engine_args: {seed: 2}}",
        "{name: vllm/d, lora: /d, base: owner/hub, engine_args: {seed: 2}}",
    )
    pool = parse_pool(text, "p")
    assert pool.groups == (("vllm/base", "vllm/a"), ("vllm/else",), ("vllm/c", "vllm/d"))
    adapter = pool.models[1]
    assert (adapter.path, adapter.lora, adapter.engine_args) == ("/b", "/a", {"seed": 1})


def test_parsers_belong_to_a_model_and_an_adapter_has_those_of_its_base_unless_it_names_its_own() -> None:
    text = of_models(
        "{name: vllm/base, path: /b, tool_parser: hermes, reasoning_parser: qwen3}",
        "{name: vllm/a, lora: /a, base: vllm/base}",
        "{name: vllm/b, lora: /b, base: vllm/base, reasoning_parser: none}",
        "{name: vllm/plain, path: /c}",
    )
    pool = parse_pool(text, "p")
    assert [(model.tool_parser, model.reasoning_parser) for model in pool.models] == [
        ("hermes", "qwen3"),
        ("hermes", "qwen3"),
        ("hermes", "none"),
        ("", ""),
    ]
    assert pool.groups == (("vllm/base", "vllm/a", "vllm/b"), ("vllm/plain",))
    assert parse_pools(format_pools(PoolsFile((pool,)))).pools[0].models[2].reasoning_parser == "none"


def test_an_unknown_pool_is_reported_with_the_known_ones() -> None:
    with pytest.raises(UnknownPool) as caught:
        parse_pool(POOLS, "gpu")
    assert caught.value.known == ["local", "remote"]


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
        (
            remote(", scoring_methods: [guess]"),
            "scoring_methods lists something else than loglikelihood, generate, constrained",
        ),
        (remote(", scoring_methods: generate"), "scoring_methods lists something else than"),
        (remote(", scoring_methods: 7"), "scoring_methods lists something else than"),
        (remote(", scoring_methods: [loglikelihood]"), "scoring_methods leaves out generate"),
        ("pools: [{name: p, engine: gemini, concurrency: 1}]", "names no provider"),
        (
            of_engine("gemini", "loglikelihood"),
            "scoring_methods lists loglikelihood, but the engine gemini has generate",
        ),
        (
            of_engine("anthropic", "constrained"),
            "scoring_methods lists constrained, but the engine anthropic has gener",
        ),
        (
            remote(", scoring_methods: [generate, constrained]"),
            "no constrained_field (structured_outputs, guided",
        ),
        (remote(", constrained_field: regex"), "constrained_field is regex; known: structured_outputs, gu"),
        (remote(", max_tokens_field: tokens"), "max_tokens_field is tokens; known: max_tokens, max_complet"),
        (
            remote(", max_tokens_field: max_tokens").replace("engine: openai", "engine: gemini"),
            "has a max_tokens_field, which the engine gemini does not send",
        ),
        (with_url("localhost:9999/v1"), "has a base_url that is not an http:// or https:// address"),
        (with_url("ftp://host/v1"), "has a base_url that is not an http:// or https:// address"),
        (with_url("http:///v1"), "has a base_url that is not an http:// or https:// address"),
        (with_url("http://host:99999/v1"), "has a base_url that is not an http:// or https:// address"),
        (with_url("http://[host/v1"), "has a base_url that is not an http:// or https:// address"),
    ],
)
def test_an_unusable_file_is_reported_in_one_sentence(text: str, problem: str) -> None:
    with pytest.raises(InvalidPools) as caught:
        parse_pool(text, "a.b" if "a.b" in text else "p")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
