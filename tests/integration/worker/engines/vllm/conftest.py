"""The real engine, run by the Python that has vLLM: one program for all files, as each start takes long."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harness.processes import bound, killed_at_the_end

REPOSITORY = Path(__file__).resolve().parents[5]
VLLM_PYTHON = Path(os.environ.get("PROCTOR_VLLM_PYTHON") or REPOSITORY / ".venv-vllm" / "bin" / "python")
PROGRAM = Path(__file__).with_name("vllm_program.py")
LIMIT_SECONDS = 500


@contextmanager
def running(models: Path, what: str) -> Iterator[subprocess.Popen[str]]:
    command = [str(VLLM_PYTHON), str(PROGRAM), str(models), what]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with (models.parent / f"{what}.log").open("w") as log:
        process = subprocess.Popen(
            bound(*command),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        with killed_at_the_end(process, group=True):
            yield process


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not VLLM_PYTHON.exists():
        pytest.skip(f"no Python with vLLM: PROCTOR_VLLM_PYTHON is not set, no {VLLM_PYTHON}")
    return tmp_path_factory.mktemp("vllm") / "models"


@pytest.fixture(scope="session")
def seen(models: Path) -> dict[str, Any]:
    """What `vllm_program.py` saw."""
    return observed(models, "observe")


@pytest.fixture(scope="session")
def unloadable(models: Path) -> dict[str, Any]:
    """What it saw of models that cannot be loaded."""
    return observed(models, "unloadable")


def observed(models: Path, what: str) -> dict[str, Any]:
    with running(models, what) as process:
        output, _ = process.communicate(timeout=LIMIT_SECONDS)
    log = (models.parent / f"{what}.log").read_text(encoding="utf-8", errors="replace")
    assert process.returncode == 0, log[-3000:]
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found
