"""A folder that is not a model is refused in one sentence, before vLLM is started for it."""

import json
from pathlib import Path

import pytest

from proctor.values.providers.pool import PoolModel
from services.worker.engines.errors import ModelCannotLoad
from services.worker.engines.vllm.model_files import VllmSettings, cpu_engine_args, read_model_config

CONFIG = {"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 512}


def make_folder(folder: Path, config: str | None, weights: str | None) -> PoolModel:
    if config is not None:
        (folder / "config.json").write_text(config, encoding="utf-8")
    if weights is not None:
        (folder / weights).touch()
    return PoolModel("vllm/some", str(folder))


@pytest.mark.parametrize(
    ("config", "weights", "reason"),
    [
        (None, "model.safetensors", "no config.json"),
        ("{", "model.safetensors", "not valid JSON"),
        ("{}", "model.safetensors", "names no model architecture"),
        (json.dumps(CONFIG), None, "no weights"),
    ],
)
def test_folder_that_is_no_model_is_refused(
    tmp_path: Path, config: str | None, weights: str | None, reason: str
) -> None:
    with pytest.raises(ModelCannotLoad, match=reason):
        read_model_config(make_folder(tmp_path, config, weights))


def test_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelCannotLoad, match="does not exist"):
        read_model_config(PoolModel("vllm/none", str(tmp_path / "none")))


def test_hub_id_is_left_to_vllm() -> None:
    assert read_model_config(PoolModel("vllm/some", "some-owner/some-model")) == {}


def test_model_that_the_pool_does_not_serve_is_refused_with_those_it_serves() -> None:
    settings = VllmSettings((PoolModel("vllm/a", "/a"), PoolModel("vllm/b", "/b")))
    with pytest.raises(ModelCannotLoad, match=r"vllm/a, vllm/b"):
        settings.find_model("vllm/c")


@pytest.mark.parametrize(("config_length", "length"), [(512, 512), (40_960, 2048), (None, 2048)])
def test_context_is_cut_for_a_cpu(config_length: int | None, length: int) -> None:
    arguments = cpu_engine_args(VllmSettings(()), {"max_position_embeddings": config_length})
    assert arguments["max_model_len"] == length


def test_hub_is_asked_only_where_a_model_comes_from_it() -> None:
    folder, hub = PoolModel("vllm/a", "/a"), PoolModel("vllm/b", "owner/b")
    assert "HF_HUB_OFFLINE" in VllmSettings((folder,)).environment(is_cpu=True)
    assert "HF_HUB_OFFLINE" not in VllmSettings((folder, hub)).environment(is_cpu=True)
