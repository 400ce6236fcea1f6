"""Says whether a built model is what today's recipe, rows and templates would give (without torch)."""

import hashlib
from pathlib import Path

from proctor.starter.make_rows import SUITE_DIR

_STAMP = "recipe.sha256"


def recipe_digest(suite_dir: Path = SUITE_DIR) -> str:
    """A digest of all that shapes the model: this package's code and words, the suite's YAML and rows."""
    digest = hashlib.sha256()
    for folder, patterns in (
        (Path(__file__).parent, ("*.py", "*.json")),
        (suite_dir, ("*.yaml", "data/*.jsonl")),
    ):
        for path in sorted(path for pattern in patterns for path in folder.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def is_current(model_dir: Path, suite_dir: Path = SUITE_DIR) -> bool:
    stamp = model_dir / _STAMP
    return stamp.is_file() and stamp.read_text(encoding="ascii") == recipe_digest(suite_dir)


def write_stamp(model_dir: Path, suite_dir: Path = SUITE_DIR) -> None:
    (model_dir / _STAMP).write_text(recipe_digest(suite_dir), encoding="ascii")
