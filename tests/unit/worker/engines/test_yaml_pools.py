"""The worker's pool from the pools file, or one sentence with its path; tests/unit/values has the format."""

from pathlib import Path

import pytest

from services.worker.engines.errors import CannotStart
from services.worker.engines.yaml_pools import read_key, read_pool

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


def test_an_unknown_pool_is_reported_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="has no pool gpu; it has: local, remote"):
        read_pool(write(tmp_path, POOLS), "gpu")


def test_an_unusable_file_is_reported_in_one_sentence_with_its_path(tmp_path: Path) -> None:
    path = write(tmp_path, "pools: [{name: p, engine: vllm, concurrency: 0}]")
    with pytest.raises(CannotStart) as caught:
        read_pool(path, "p")
    assert "has a concurrency below 1" in caught.value.message
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="No such file"):
        read_pool(tmp_path / "none.yaml", "p")


def test_key_is_read_from_its_variable_without_the_line_break_of_a_secret() -> None:
    assert read_key("A_KEY", {"A_KEY": "planted\n"}) == "planted"


def test_key_is_read_from_the_file_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("planted\n")
    environ = {"A_KEY_FILE": str(tmp_path / "key")}
    assert read_key("A_KEY", environ) == "planted"
    assert read_key("A_KEY", {**environ, "A_KEY": "other"}) == "other"


@pytest.mark.parametrize("environ", [{}, {"A_KEY": " "}, {"A_KEY_FILE": ""}, {"OTHER": "planted"}])
def test_key_that_is_nowhere_is_none(environ: dict[str, str]) -> None:
    assert read_key("A_KEY", environ) is None
    assert read_key("", {"": "x", "_FILE": "/nowhere"}) is None


def test_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match=r"/absent that A_KEY_FILE names .* No such file"):
        read_key("A_KEY", {"A_KEY_FILE": str(tmp_path / "absent")})


@pytest.mark.parametrize("key", ["plan\nted", "plänted", "plan\x00ted", "x" * 20_000])
def test_key_that_no_header_can_carry_is_refused_without_telling_it(tmp_path: Path, key: str) -> None:
    (tmp_path / "key").write_text(key)
    with pytest.raises(CannotStart) as raised:
        read_key("A_KEY", {"A_KEY_FILE": str(tmp_path / "key")})
    assert "A_KEY" in str(raised.value)
    assert key not in str(raised.value)
