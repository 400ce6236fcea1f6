"""Which models a vLLM pool serves, and checks of their folders before vLLM loads them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from services.worker.engines import engine

_ENVIRONMENT = {
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass(frozen=True, slots=True)
class VllmModel:
    """A model of the pool: its name in runs, its folder or hub id, arguments for the engine.

    With `lora`, the folder of an adapter over that model. Models with the same `engine_key` share an engine.
    """

    name: str
    path: str
    engine_args: Mapping[str, object] = field(default_factory=dict)
    lora: str = ""
    engine_key: str = ""

    @property
    def is_folder(self) -> bool:
        return self.path.startswith(("/", ".", "~")) or Path(self.path).exists()

    @property
    def source(self) -> str:
        return str(Path(self.path).expanduser()) if self.is_folder else self.path


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """The engine's defaults; a model's own `engine_args` and the user's environment win over them."""

    models: tuple[VllmModel, ...]
    cpu_kv_cache_gib: int = 1
    cpu_engine_args: Mapping[str, object] = field(
        default_factory=lambda: {
            "dtype": "bfloat16",
            "max_num_seqs": 64,
            "block_size": 32,
            "enforce_eager": True,
            "distributed_executor_backend": "uni",
        }
    )
    cpu_longest_context: int = 2048

    def environment(self, *, is_cpu: bool) -> Mapping[str, str]:
        """What vLLM reads when it is imported."""
        offline = {"HF_HUB_OFFLINE": "1"} if all(model.is_folder for model in self.models) else {}
        return {**_ENVIRONMENT, **offline, **(self._cpu_environment() if is_cpu else {})}

    def _cpu_environment(self) -> Mapping[str, str]:
        """Without a cache size it takes 15 GB; torch would compile for seconds inside the first request."""
        return {
            "VLLM_CPU_KVCACHE_SPACE": str(self.cpu_kv_cache_gib),
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // 2)),
            "TORCH_COMPILE_DISABLE": "1",
        }

    def group_of(self, model: VllmModel) -> tuple[VllmModel, ...]:
        """The model and those that share its engine, itself first."""
        others = (other for other in self.models if other.engine_key == model.engine_key != "")
        return (model, *(other for other in others if other != model))

    def find_model(self, name: str) -> VllmModel:
        for model in self.models:
            if model.name == name:
                return model
        served = ", ".join(model.name for model in self.models) or "none"
        raise engine.ModelCannotLoad(f"This pool does not serve the model {name}; it serves: {served}.")


def read_model_config(model: VllmModel) -> Mapping[str, object]:
    """The model's config.json; empty for a hub id. Refuses a folder that is no model in one sentence."""
    if not model.is_folder:
        return {}
    folder = Path(model.source)
    if not folder.is_dir():
        raise engine.ModelCannotLoad(f"The folder of the model {model.name} does not exist: {folder}.")
    config_file = folder / "config.json"
    if not config_file.is_file():
        raise engine.ModelCannotLoad(f"The folder {folder} is no model: it has no config.json.")
    try:
        config = json.loads(config_file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise engine.ModelCannotLoad(f"The file {config_file} is no valid JSON: {error}.") from error
    if not isinstance(config, dict) or not config.get("architectures"):
        raise engine.ModelCannotLoad(f"The file {config_file} names no model architecture.")
    if not any(folder.glob("*.safetensors")) and not any(folder.glob("*.bin")):
        raise engine.ModelCannotLoad(f"The folder {folder} is no model: it has no weights (*.safetensors).")
    return config


def context_length(config: Mapping[str, object]) -> int | None:
    length = config.get("max_position_embeddings")
    return length if isinstance(length, int) else None


def cpu_engine_args(settings: VllmSettings, config: Mapping[str, object]) -> Mapping[str, object]:
    """A long context would ask for more cache than a CPU machine gives, so it is cut unless asked for."""
    longest = context_length(config) or settings.cpu_longest_context
    return {**settings.cpu_engine_args, "max_model_len": min(longest, settings.cpu_longest_context)}


_LENGTH_BYTES = 8
_LONGEST_HEADER = 100_000_000


def check_weights(model: VllmModel) -> None:
    """Refuses a damaged *.safetensors file in one sentence; other kinds are left to vLLM."""
    if not model.is_folder:
        return
    for file in sorted(Path(model.source).glob("*.safetensors")):
        if not _is_whole(file):
            raise engine.ModelCannotLoad(
                f"The weights of the model {model.name} are damaged or cut off: {file}; copy them again."
            )


def _is_whole(file: Path) -> bool:
    """A file is the header's length, the header in JSON, which says how many bytes follow, and those."""
    size = file.stat().st_size
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(_LENGTH_BYTES), "little")
        if size < _LENGTH_BYTES or length > min(size - _LENGTH_BYTES, _LONGEST_HEADER):
            return False
        try:
            tensors = json.loads(opened.read(length))
            ends = [entry["data_offsets"][1] for name, entry in tensors.items() if name != "__metadata__"]
            return size == _LENGTH_BYTES + length + max(ends, default=0)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            return False


_SMALL_FILES = ("*.json", "*.model", "*.txt", "*.jinja")
_WEIGHTS = ("*.safetensors", "*.bin")


def weights_revision(folder: Path) -> str:
    """16 hexadecimal digits over the texts of the folder, and names, sizes and times of its weights.

    Weights that were written anew count as others, even where their bytes are the same.
    """
    digest = hashlib.sha256()
    for file in sorted({file for pattern in _SMALL_FILES for file in folder.glob(pattern)}):
        digest.update(file.name.encode())
        digest.update(file.read_bytes())
    for file in sorted({file for pattern in _WEIGHTS for file in folder.glob(pattern)}):
        told = file.stat()
        digest.update(f"{file.name} {told.st_size} {told.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]
