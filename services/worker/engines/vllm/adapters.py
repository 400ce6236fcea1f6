"""LoRA adapters of a vLLM pool: checks of their folders, and engine arguments that serve them together."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from proctor.values.pools import PoolModel
from services.worker.engines import engine
from services.worker.engines.vllm.model_files import weights_revision

# vLLM reserves memory for adapters by the largest rank; it supports these.
_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
# Adapters in one batch of the engine; others are swapped in when needed.
_MOST_AT_ONCE = 8


def adapter_arguments(group: Iterable[PoolModel]) -> Mapping[str, object]:
    """Engine arguments to serve the group; empty where it has no adapter."""
    adapters = [model for model in group if model.lora]
    ranks = [rank for rank in map(_rank_if_whole, adapters) if rank]
    if not ranks:
        return {}
    room = next((room for room in _RANKS if room >= max(ranks)), _RANKS[-1])
    return {
        "enable_lora": True,
        "max_lora_rank": room,
        "max_loras": min(len(adapters), _MOST_AT_ONCE),
        "max_cpu_loras": len(adapters),
    }


def read_adapter_rank(model: PoolModel) -> int:
    """Raises ModelCannotLoad for a folder that is no adapter."""
    folder = Path(model.lora).expanduser()
    if not folder.is_dir():
        raise engine.ModelCannotLoad(f"The folder of the adapter {model.name} does not exist: {folder}.")
    config_file = folder / "adapter_config.json"
    if not config_file.is_file():
        raise engine.ModelCannotLoad(f"The folder {folder} is no adapter: it has no adapter_config.json.")
    try:
        config = json.loads(config_file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise engine.ModelCannotLoad(f"The file {config_file} is no valid JSON: {error}.") from error
    rank = config.get("r") if isinstance(config, dict) else None
    if not isinstance(rank, int) or not 0 < rank <= _RANKS[-1]:
        raise engine.ModelCannotLoad(f"The file {config_file} names no rank r from 1 to {_RANKS[-1]}.")
    if not any((folder / f"adapter_model.{kind}").is_file() for kind in ("safetensors", "bin")):
        raise engine.ModelCannotLoad(
            f"The folder {folder} is no adapter: it has no weights (adapter_model.safetensors)."
        )
    return rank


def adapter_facts(facts: Mapping[str, str], models: Iterable[PoolModel]) -> Mapping[str, str]:
    """The engine's facts with the adapters' revisions: a changed adapter is another revision of the model."""
    revisions = {
        model.name: weights_revision(Path(model.lora).expanduser()) for model in models if model.lora
    }
    if not revisions:
        return facts
    named = ", ".join(f"{name} {revision}" for name, revision in revisions.items())
    return {
        **facts,
        "adapters": named,
        "model_revision": "+".join((facts["model_revision"], *sorted(revisions.values()))),
    }


def _rank_if_whole(model: PoolModel) -> int | None:
    """None for a broken adapter: its problem is reported when it is loaded, and does not block the others."""
    try:
        return read_adapter_rank(model)
    except engine.ModelCannotLoad:
        return None
