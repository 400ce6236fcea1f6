"""The models of a vLLM pool, listed from their folders: memory by the formula, problems by name."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from proctor.values.providers.models import ModelInfo
from proctor.values.providers.pool import PoolModel
from services.worker.engines.vllm.model_files import VllmSettings
from services.worker.engines.vllm.model_list import list_vllm_models

# The shape of Qwen3-0.6B.
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "max_position_embeddings": 40960,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "hidden_size": 1024,
    "torch_dtype": "bfloat16",
}
WEIGHTS = 1_000_000
# 2 × layers × kv heads × head dim × bytes
CACHE_PER_TOKEN = 2 * 28 * 8 * 128 * 2


def model_in(folder: Path, changes: dict[str, Any] | None = None, **engine_args: object) -> PoolModel:
    (folder / "config.json").write_text(json.dumps(CONFIG | (changes or {})))
    (folder / "model-00001-of-00002.safetensors").write_bytes(bytes(WEIGHTS // 2))
    (folder / "model-00002-of-00002.safetensors").write_bytes(bytes(WEIGHTS // 2))
    return PoolModel("vllm/some", str(folder), engine_args)


def listed(model: PoolModel, *, is_cpu: bool = False) -> ModelInfo:
    [info] = list_vllm_models(VllmSettings((model,)), is_cpu=is_cpu)
    return info


def test_memory_is_weights_and_the_cache_of_one_longest_context(tmp_path: Path) -> None:
    info = listed(model_in(tmp_path))
    assert (info.size_bytes, info.context_tokens) == (WEIGHTS, 40960)
    assert info.memory_bytes == WEIGHTS + 40960 * CACHE_PER_TOKEN
    assert (info.quantization, info.problem) == ("bfloat16", "")


def test_model_is_as_old_as_the_newest_of_its_weights(tmp_path: Path) -> None:
    model = model_in(tmp_path)
    for number, time in enumerate((1_700_000_000, 1_600_000_000), 1):
        os.utime(tmp_path / f"model-0000{number}-of-00002.safetensors", (time, time))
    assert listed(model).created_at == datetime.fromtimestamp(1_700_000_000, UTC)


def test_arguments_of_the_engine_change_context_and_cache(tmp_path: Path) -> None:
    info = listed(model_in(tmp_path, max_model_len=1000, kv_cache_dtype="fp8"))
    assert info.context_tokens == 1000
    assert info.memory_bytes == WEIGHTS + 1000 * CACHE_PER_TOKEN // 2


def test_context_on_a_cpu_is_what_the_engine_is_started_with(tmp_path: Path) -> None:
    info = listed(model_in(tmp_path), is_cpu=True)
    assert info.context_tokens == 2048
    assert info.memory_bytes == WEIGHTS + 2048 * CACHE_PER_TOKEN


def test_full_precision_is_served_in_half_of_it_unless_ordered(tmp_path: Path) -> None:
    info = listed(model_in(tmp_path, {"torch_dtype": "float32"}, max_model_len=10))
    assert (info.size_bytes, info.memory_bytes) == (WEIGHTS, WEIGHTS // 2 + 10 * CACHE_PER_TOKEN)
    info = listed(model_in(tmp_path, {"torch_dtype": "float32"}, max_model_len=10, dtype="float32"))
    assert info.memory_bytes == WEIGHTS + 10 * CACHE_PER_TOKEN * 2


def test_quantized_weights_stay_as_large_as_their_files(tmp_path: Path) -> None:
    quantized = {"quantization_config": {"quant_method": "awq"}, "torch_dtype": "float16"}
    info = listed(model_in(tmp_path, quantized, max_model_len=10))
    assert (info.quantization, info.memory_bytes) == ("awq", WEIGHTS + 10 * CACHE_PER_TOKEN)


def test_shape_is_found_in_the_language_part_of_a_model_that_sees(tmp_path: Path) -> None:
    shape = {name: CONFIG[name] for name in CONFIG if name != "architectures"}
    nothing = dict.fromkeys(shape)
    info = listed(model_in(tmp_path, {**nothing, "text_config": shape}))
    assert info.memory_bytes == WEIGHTS + 40960 * CACHE_PER_TOKEN


@pytest.mark.parametrize(
    "changes", [{"num_hidden_layers": None}, {"kv_lora_rank": 512}, {"torch_dtype": None}, {"head_dim": "x"}]
)
def test_memory_of_an_unknown_shape_is_unknown(tmp_path: Path, changes: dict[str, Any]) -> None:
    info = listed(model_in(tmp_path, {**changes, "hidden_size": None}))
    assert (info.size_bytes, info.memory_bytes) == (WEIGHTS, None)


def test_same_weights_under_another_name_count_once(tmp_path: Path) -> None:
    model = model_in(tmp_path)
    (tmp_path / "consolidated.safetensors").write_bytes(bytes(WEIGHTS))
    assert listed(model).size_bytes == WEIGHTS


def test_folder_that_is_no_model_is_listed_with_what_is_wrong(tmp_path: Path) -> None:
    broken = PoolModel("vllm/none", str(tmp_path / "none"))
    settings = VllmSettings((broken, model_in(tmp_path)))
    none, some = list_vllm_models(settings, is_cpu=False)
    assert (none.model, none.size_bytes) == ("vllm/none", None)
    assert "does not exist" in none.problem
    assert some.problem == ""


def test_model_from_a_hub_is_listed_by_its_pool_entry() -> None:
    info = listed(PoolModel("vllm/hub", "some-owner/some-model", {"max_model_len": 512}))
    assert (info.context_tokens, info.size_bytes, info.memory_bytes) == (512, None, None)
