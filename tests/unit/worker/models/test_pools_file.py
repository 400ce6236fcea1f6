"""The worker's pool from the pools file, or one sentence with its path; tests/unit/values has the format."""

from pathlib import Path

import pytest

from services.worker.models.errors import PoolsFileInvalid, UnknownPool
from services.worker.models.pools_file import read_pool

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
    with pytest.raises(UnknownPool, match="has no pool gpu; it has: local, remote"):
        read_pool(write(tmp_path, POOLS), "gpu")


def test_an_unusable_file_is_reported_in_one_sentence_with_its_path(tmp_path: Path) -> None:
    path = write(tmp_path, "pools: [{name: p, engine: vllm, concurrency: 0}]")
    with pytest.raises(PoolsFileInvalid) as caught:
        read_pool(path, "p")
    assert "has a concurrency below 1" in caught.value.message
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PoolsFileInvalid, match="No such file"):
        read_pool(tmp_path / "none.yaml", "p")
