"""What tells two states of a model's folder apart, without reading its weights."""

from __future__ import annotations

import hashlib
from pathlib import Path

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
