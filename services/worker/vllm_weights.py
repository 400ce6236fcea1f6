"""Whether the weight files of a folder are whole, by their headers: vLLM is unclear about damaged ones."""

from __future__ import annotations

import json
from pathlib import Path

from services.worker import engine
from services.worker.vllm_models import VllmModel

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
