"""A model as a person names it leads to the pool that serves it."""

from pathlib import Path

import pytest

from proctor.stack.errors import ModelUnusable
from proctor.stack.options import remote_pool, vllm_pool
from proctor.stack.pools import STARTER_MODEL, aliases_of, choose_model, default_pools, pools_for
from proctor.values.providers.pool import PoolModel, Provider


@pytest.mark.parametrize(
    ("given", "name", "source"),
    [
        (STARTER_MODEL, "vllm/starter", STARTER_MODEL),
        ("vllm/Qwen/Qwen3-0.6B", "vllm/Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B"),
        ("openai/gpt-5", "openai/gpt-5", ""),
        ("ollama/hf.co/a/b:Q8_0", "ollama/hf.co/a/b:Q8_0", ""),
    ],
)
def test_name_decides_where_the_model_is(given: str, name: str, source: str) -> None:
    model = choose_model(given)
    assert (model.name, model.source) == (name, source)


def test_local_folder_is_served_under_its_own_name(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    with pytest.raises(ModelUnusable, match=r"not a model folder: it has no config\.json"):
        choose_model(str(folder))
    (folder / "config.json").write_text("{}")
    assert choose_model(str(folder)).name == "vllm/tiny"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("/nowhere/at/all", "There is no"),
        (
            "gpt",
            r"gpt has no known provider: write PROVIDER/MODEL, where.*ollama, openai.*vllm\.$",
        ),
        (
            "opnai/gpt-5",
            r"known provider.*; for the hub write vllm/opnai/gpt-5, for a folder \./opnai/gpt-5\.$",
        ),
        ("openai/", "openai/ names no model: write openai/NAME"),
        ("vllm/gpt", "no model that can be loaded here: write vllm/starter, or vllm/OWNER/NAME"),
        ("vllm/a/b/c", "no model that can be loaded here"),
    ],
)
def test_what_is_no_model_is_refused(given: str, sentence: str) -> None:
    with pytest.raises(ModelUnusable, match=sentence):
        choose_model(given)


def test_remote_model_is_served_by_a_pool_of_its_provider() -> None:
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:18080/v1"}
    (pool,) = pools_for([choose_model("openai/a"), choose_model("openai/b")], environ, print)
    assert pool.provider == Provider("openai", "http://127.0.0.1:18080/v1", "OPENAI_API_KEY")


@pytest.mark.parametrize("provider", ["ollama", "gemini", "anthropic"])
def test_provider_with_an_api_of_its_own_is_asked_by_its_own_engine(provider: str) -> None:
    keys = {"GOOGLE_API_KEY": "planted-key", "ANTHROPIC_API_KEY": "planted-key"}
    (pool,) = pools_for([choose_model(f"{provider}/m")], keys, print)
    assert (pool.engine, pool.provider_name) == (provider, provider)


def test_remote_server_without_an_address_is_refused() -> None:
    with pytest.raises(ModelUnusable, match="Set REMOTE_BASE_URL"):
        pools_for([choose_model("remote/m")], {}, print)


def test_own_server_of_a_provider_is_refused_without_its_key() -> None:
    with pytest.raises(ModelUnusable, match=r"^openai needs a key: set OPENAI_API_KEY \(https://platform"):
        pools_for([choose_model("openai/a")], {}, print)
    for given in (
        {"OPENAI_API_KEY": "planted-key"},
        {"OPENAI_API_KEY_FILE": "/run/secrets/key"},
        {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"},
    ):
        assert pools_for([choose_model("openai/a")], given, print)
    assert pools_for([choose_model("ollama/a")], {}, print)


@pytest.mark.parametrize("url", ["localhost:9999/v1", "http:///v1", "http://h:port/v1", "ftp://h/v1"])
def test_address_that_is_none_of_the_web_is_refused(url: str) -> None:
    with pytest.raises(ModelUnusable, match=r"^OPENAI_BASE_URL cannot be"):
        pools_for([choose_model("openai/a")], {"OPENAI_BASE_URL": url}, print)


def test_two_models_of_one_name_are_refused(tmp_path: Path) -> None:
    folders = [tmp_path / letter / "final" for letter in ("a", "b")]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
    with pytest.raises(ModelUnusable, match="would both be called vllm/final"):
        pools_for([choose_model(str(folder)) for folder in folders], {}, print)


def test_missing_vllm_environment_says_how_to_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.stack.pools.find_vllm_python", lambda *_: None)
    with pytest.raises(ModelUnusable, match="`proctor vllm install` makes it"):
        pools_for([choose_model(STARTER_MODEL)], {"PROCTOR_CACHE_DIR": str(tmp_path)}, print)


def test_providers_that_are_set_up_have_a_pool_each_and_need_no_vllm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.stack.pools.find_vllm_python", lambda *_: None)
    # A key of a provider without a server says nothing about where to send it.
    given = {"OPENAI_API_KEY": "k", "OLLAMA_BASE_URL": "http://127.0.0.1:1", "REMOTE_API_KEY": "k"}
    assert [pool.name for pool in default_pools(given, print)] == ["remote-openai", "remote-ollama"]
    with pytest.raises(ModelUnusable, match="`proctor vllm install` makes it"):
        default_pools({"PROCTOR_CACHE_DIR": str(tmp_path)}, print)


def test_starter_model_comes_first_where_vllm_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.stack.pools.find_vllm_python", lambda *_: tmp_path / "python")
    monkeypatch.setattr("proctor.stack.pools.ensure_starter_model", lambda *_: tmp_path / "model")
    local, remote = default_pools({"OPENAI_API_KEY": "k"}, print)
    assert [model.name for model in local.models] == [STARTER_MODEL]
    assert remote.name == "remote-openai"


POOLS = (vllm_pool(PoolModel("vllm/starter", "/m")), remote_pool(Provider("openai", "http://x/v1")))


def test_aliases_stand_for_models_that_are_served() -> None:
    given = ["gpt-4o=vllm/starter", "a/b=openai/c=d", "gpt-4o=vllm/starter"]
    assert aliases_of(given, POOLS) == {"gpt-4o": "vllm/starter", "a/b": "openai/c=d"}
    assert aliases_of([], POOLS) == {}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["gpt-4o"], "write it as NAME=PROVIDER/MODEL"),
        (["=vllm/starter"], "is not an alias"),
        (["gpt-4o="], "is not an alias"),
        (["gpt-4o=vllm/other"], "gpt-4o cannot stand for vllm/other, which is not served here"),
        (["gpt-4o=openai/"], "not served here"),
        (["a=vllm/starter", "a=openai/b"], "a would stand for vllm/starter and for openai/b"),
    ],
)
def test_what_cannot_be_an_alias_is_refused(given: list[str], sentence: str) -> None:
    with pytest.raises(ModelUnusable, match=sentence):
        aliases_of(given, POOLS)
