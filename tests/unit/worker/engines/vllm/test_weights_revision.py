"""A model's folder that was trained anew is another revision."""

import os
from pathlib import Path

import pytest

from services.worker.engines.vllm.model_files import weights_revision


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    return tmp_path


def test_the_same_folder_has_the_same_revision(folder: Path) -> None:
    assert weights_revision(folder) == weights_revision(folder)
    (folder / "README.md").write_text("What it is.")
    assert len(weights_revision(folder)) == 16


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_other_texts_and_weights_are_another_revision(folder: Path, name: str) -> None:
    before = weights_revision(folder)
    (folder / name).write_bytes(b'{"a": 1}')
    assert weights_revision(folder) != before


def test_weights_that_were_written_anew_are_another_revision(folder: Path) -> None:
    before = weights_revision(folder)
    os.utime(folder / "model.safetensors", (1, 1))
    assert weights_revision(folder) != before
