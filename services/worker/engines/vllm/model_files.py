"""Which models and LoRA adapters a vLLM pool serves, and checks of their folders before vLLM loads them."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from proctor.values.providers.pool import PoolModel
from services.worker.engines.errors import ModelCannotLoad
from services.worker.engines.parsed_json import object_of

_ENVIRONMENT = {
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "TOKENIZERS_PARALLELISM": "false",
}
# Both numbers are from the format of safetensors: the header's length comes first, and is at most 100 MB.
_LENGTH_BYTES = 8
_MAX_HEADER_BYTES = 100_000_000
_SMALL_FILES = ("*.json", "*.model", "*.txt", "*.jinja")
_WEIGHTS = ("*.safetensors", "*.bin")
# vLLM reserves memory for adapters by the largest rank; it supports these.
_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
# Adapters in one batch of the engine; others are swapped in when needed.
_MAX_AT_ONCE = 8
# The engine's own process computes. For the short name `uni` vLLM starts another one on CPUs, to set OpenMP's
# environment there; ours is set before vLLM starts.
_WITHOUT_WORKER_PROCESS = "vllm.v1.executor.uniproc_executor.UniProcExecutor"


def is_folder(path: str) -> bool:
    """Whether it is a folder, or a model id on a hub."""
    return path.startswith(("/", ".", "~")) or Path(path).exists()


def model_source(model: PoolModel) -> str:
    """The folder or hub id from which vLLM loads the weights."""
    return str(Path(model.path).expanduser()) if is_folder(model.path) else model.path


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """Defaults; a model's own `engine_args` and the user's environment win over them."""

    models: tuple[PoolModel, ...]
    cpu_kv_cache_gib: int = 1
    cpu_engine_args: Mapping[str, object] = field(
        default_factory=lambda: {
            "dtype": "bfloat16",
            "max_num_seqs": 64,
            "block_size": 32,
            "enforce_eager": True,
            "distributed_executor_backend": _WITHOUT_WORKER_PROCESS,
        }
    )
    cpu_longest_context: int = 2048

    def environment(self, *, is_cpu: bool) -> Mapping[str, str]:
        """Variables that vLLM reads when it is imported."""
        offline = {"HF_HUB_OFFLINE": "1"} if all(is_folder(model.path) for model in self.models) else {}
        return {**_ENVIRONMENT, **offline, **(self._cpu_environment() if is_cpu else {})}

    def _cpu_environment(self) -> Mapping[str, str]:
        """The default cache is 15 GB; compilation would delay the first request by seconds."""
        return {
            "VLLM_CPU_KVCACHE_SPACE": str(self.cpu_kv_cache_gib),
            # vLLM binds its threads to cores, which may fail in a container that has only some of them.
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            # Hardware threads share a core's units: more threads than cores slow each other down.
            "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // 2)),
            "TORCH_COMPILE_DISABLE": "1",
        }

    def group_of(self, model: PoolModel) -> tuple[PoolModel, ...]:
        """The model and those that share its engine, itself first."""
        others = (other for other in self.models if other.engine_key == model.engine_key != "")
        return (model, *(other for other in others if other != model))

    def find_model(self, name: str) -> PoolModel:
        for model in self.models:
            if model.name == name:
                return model
        served = ", ".join(model.name for model in self.models) or "none"
        raise ModelCannotLoad(f"This pool does not serve the model {name}; it serves: {served}.")


def read_model_config(model: PoolModel) -> Mapping[str, object]:
    """The model's config.json; empty for a hub id. Raises ModelCannotLoad for a folder without a model."""
    if not is_folder(model.path):
        return {}
    folder = Path(model_source(model))
    config = _read_config("model", model.name, folder / "config.json")
    if not config.get("architectures"):
        raise ModelCannotLoad(f"The file {folder / 'config.json'} names no model architecture.")
    if not any(folder.glob("*.safetensors")) and not any(folder.glob("*.bin")):
        raise ModelCannotLoad(f"The folder {folder} is not a model: it has no weights (*.safetensors).")
    return config


def _read_config(kind: str, name: str, file: Path) -> Mapping[str, object]:
    """Empty for a file without a JSON object."""
    if not file.parent.is_dir():
        raise ModelCannotLoad(f"The folder of the {kind} {name} does not exist: {file.parent}.")
    if not file.is_file():
        article = "an" if kind == "adapter" else "a"
        raise ModelCannotLoad(f"The folder {file.parent} is not {article} {kind}: it has no {file.name}.")
    try:
        return object_of(json.loads(file.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ModelCannotLoad(f"The file {file} is not valid JSON: {error}.") from error


def context_length(config: Mapping[str, object]) -> int | None:
    length = config.get("max_position_embeddings")
    return length if isinstance(length, int) else None


def cpu_engine_args(settings: VllmSettings, config: Mapping[str, object]) -> Mapping[str, object]:
    """Limits the context by default: a long one needs more cache than CPU machines have."""
    longest = context_length(config) or settings.cpu_longest_context
    return {**settings.cpu_engine_args, "max_model_len": min(longest, settings.cpu_longest_context)}


def check_weights(model: PoolModel) -> None:
    """Raises ModelCannotLoad for a damaged *.safetensors file, for which vLLM's own message is unclear."""
    if not is_folder(model.path):
        return
    for file in sorted(Path(model_source(model)).glob("*.safetensors")):
        if not _is_whole(file):
            raise ModelCannotLoad(
                f"The weights of the model {model.name} are damaged or cut off: {file}; copy them again."
            )


def _is_whole(file: Path) -> bool:
    """A file is the length of its header, the header as JSON with the size of the data, and the data."""
    size = file.stat().st_size
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(_LENGTH_BYTES), "little")
        if size < _LENGTH_BYTES or length > min(size - _LENGTH_BYTES, _MAX_HEADER_BYTES):
            return False
        try:
            tensors = json.loads(opened.read(length))
            ends = [entry["data_offsets"][1] for name, entry in tensors.items() if name != "__metadata__"]
            return size == _LENGTH_BYTES + length + max(ends, default=0)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            return False


def weights_revision(folder: Path) -> str:
    """16 hexadecimal digits over the folder's text files, and over names, sizes and times of its weights.

    Weights that were rewritten count as changed, even where their bytes are the same.
    """
    digest = hashlib.sha256()
    for file in sorted({file for pattern in _SMALL_FILES for file in folder.glob(pattern)}):
        digest.update(file.name.encode())
        digest.update(file.read_bytes())
    for file in sorted({file for pattern in _WEIGHTS for file in folder.glob(pattern)}):
        stat = file.stat()
        # Reading the weights themselves would take minutes.
        digest.update(f"{file.name} {stat.st_size} {stat.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]


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
        "max_loras": min(len(adapters), _MAX_AT_ONCE),
        "max_cpu_loras": len(adapters),
    }


def read_adapter_rank(model: PoolModel) -> int:
    """Raises ModelCannotLoad for a folder without an adapter."""
    folder = Path(model.lora).expanduser()
    rank = _read_config("adapter", model.name, folder / "adapter_config.json").get("r")
    if not isinstance(rank, int) or not 0 < rank <= _RANKS[-1]:
        file = folder / "adapter_config.json"
        raise ModelCannotLoad(f"The file {file} names no rank r from 1 to {_RANKS[-1]}.")
    if not any((folder / f"adapter_model.{kind}").is_file() for kind in ("safetensors", "bin")):
        raise ModelCannotLoad(
            f"The folder {folder} is not an adapter: it has no weights (adapter_model.safetensors)."
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
    except ModelCannotLoad:
        return None
