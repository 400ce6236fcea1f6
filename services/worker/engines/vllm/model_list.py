"""Lists the models of a vLLM pool from their folders: size, context, quantization, memory, problems."""

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from proctor.values.providers.models import ModelCapabilities, ModelInfo
from proctor.values.providers.pool import PoolModel
from services.worker.engines.engine import AttentionShape
from services.worker.engines.errors import ModelCannotLoad
from services.worker.engines.parsed_json import count_of, object_of, text_of
from services.worker.engines.vllm.model_files import (
    VllmSettings,
    context_length,
    cpu_engine_args,
    is_folder,
    model_source,
    read_model_config,
)

CAPABILITIES = ModelCapabilities(
    loglikelihood=True, chat=True, completion=True, constrained=True, seed=True, logprobs=True
)
_SHAPE = ("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size")
_VALUE_BYTES = {"float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2}
# By default vLLM serves weights of full precision in half precision.
_AUTO_DTYPE = {"float32": "bfloat16"}
# The first pattern that matches: some folders hold the same weights again under other names.
_WEIGHT_FILES = ("model*.safetensors", "*.safetensors", "*.bin")


def list_vllm_models(settings: VllmSettings, *, is_cpu: bool) -> tuple[ModelInfo, ...]:
    """Reads the disk; a model from a hub is unknown before its download.

    Heartbeats report which model is loaded, for every worker of the pool.
    """
    return tuple(_model_info(model, settings, is_cpu=is_cpu) for model in settings.models)


def _model_info(model: PoolModel, settings: VllmSettings, *, is_cpu: bool) -> ModelInfo:
    try:
        config = read_model_config(model)
    except ModelCannotLoad as error:
        return ModelInfo(model.name, capabilities=CAPABILITIES, problem=str(error))
    # A multimodal model has the facts of its language model in a part of their own.
    facts = {**config, **object_of(config.get("text_config"))}
    arguments = {**(cpu_engine_args(settings, facts) if is_cpu else {}), **model.engine_args}
    context = count_of(arguments.get("max_model_len")) or context_length(facts)
    files = _weight_files(Path(model_source(model))) if is_folder(model.path) else []
    size = sum(file.st_size for file in files) or None
    written = max((file.st_mtime for file in files), default=None)
    return ModelInfo(
        model.name,
        capabilities=CAPABILITIES,
        context_tokens=context,
        size_bytes=size,
        memory_bytes=_memory_need(facts, arguments, size, context),
        quantization=_quantization(facts, arguments) or _served_dtype(facts, arguments),
        created_at=None if written is None else datetime.fromtimestamp(int(written), UTC),
    )


def _weight_files(folder: Path) -> list[os.stat_result]:
    found: Iterable[list[Path]] = (list(folder.glob(pattern)) for pattern in _WEIGHT_FILES)
    files = next((files for files in found if files), [])
    return [file.stat() for file in files]


def _memory_need(
    config: Mapping[str, object], arguments: Mapping[str, object], size: int | None, context: int | None
) -> int | None:
    """Weights as they are served and the cache of one longest context, over all devices together.

    The engine's working memory comes on top. None where the shape is unknown.
    """
    dtype = _served_dtype(config, arguments)
    layers, heads, kv_heads, head_dim, hidden_size = (count_of(config.get(name)) for name in _SHAPE)
    shape = AttentionShape(layers, heads, kv_heads or heads, head_dim, hidden_size)
    # DeepSeek's keys and values have a compressed form.
    is_unknown = dtype not in _VALUE_BYTES or config.get("kv_lora_rank")
    if is_unknown or not (size and context and shape.cache_bytes(context, 1)):
        return None
    stored = _stored_dtype(config)
    if not _quantization(config, arguments) and stored in _VALUE_BYTES:
        size = size * _VALUE_BYTES[dtype] // _VALUE_BYTES[stored]
    is_fp8_cache = str(arguments.get("kv_cache_dtype", "auto")).startswith("fp8")
    return size + shape.cache_bytes(context, 1 if is_fp8_cache else _VALUE_BYTES[dtype])


def _quantization(config: Mapping[str, object], arguments: Mapping[str, object]) -> str:
    """The method; empty where weights are served as `_served_dtype`."""
    stored = object_of(config.get("quantization_config")).get("quant_method")
    return text_of(arguments.get("quantization")) or text_of(stored)


def _served_dtype(config: Mapping[str, object], arguments: Mapping[str, object]) -> str:
    ordered, stored = text_of(arguments.get("dtype")), _stored_dtype(config)
    return _AUTO_DTYPE.get(stored, stored) if ordered in ("", "auto") else ordered


def _stored_dtype(config: Mapping[str, object]) -> str:
    return text_of(config.get("dtype")) or text_of(config.get("torch_dtype"))
