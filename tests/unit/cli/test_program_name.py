"""Printed commands can be typed: the program is called as the shell of the reader would find it."""

import json
import sys
from importlib.metadata import PathDistribution as Distribution
from pathlib import Path

import pytest

from proctor.cli.program import program_name, with_program_name


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the programs of a virtual environment that runs us and that PATH does not name."""
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "proctor").touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return folder


def test_program_below_the_current_folder_is_called_from_there(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(environment.parents[1])
    assert program_name() == ".venv/bin/proctor"


def test_program_elsewhere_is_called_by_its_whole_path(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (environment / "below").mkdir()
    monkeypatch.chdir(environment / "below")
    assert program_name() == str(environment / "proctor")


def test_program_that_the_shell_finds_is_called_by_its_name(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(environment))
    assert program_name() == "proctor"


def test_program_whose_first_name_another_package_has_is_called_by_its_second(
    environment: Path, tmp_path: Path
) -> None:
    (tmp_path / "proctor").touch(mode=0o755)
    (environment / "proctor-eval").touch(mode=0o755)
    (tmp_path / "proctor-eval").symlink_to(environment / "proctor-eval")
    assert program_name() == "proctor-eval"


def test_program_that_was_not_installed_is_called_by_its_name(environment: Path) -> None:
    (environment / "proctor").unlink()
    assert program_name() == "proctor"


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        ("", "'proctor-eval[stack]'"),
        (
            "file:///a%20b/proctor_eval-1.0-py3-none-any.whl",
            "'/a b/proctor_eval-1.0-py3-none-any.whl[stack]'",
        ),
    ],
)
def test_program_that_uvx_started_is_called_by_uvx(
    environment: Path, monkeypatch: pytest.MonkeyPatch, origin: str, requirement: str
) -> None:
    """Which puts its own folder before PATH, for it alone."""
    monkeypatch.setenv("PATH", str(environment))
    monkeypatch.setenv("UV", "/usr/bin/uv")
    monkeypatch.setattr(sys, "prefix", str(environment / "uv" / "archive-v0" / "x"))
    recorded = json.dumps({"url": origin}) if origin else None
    monkeypatch.setattr(Distribution, "read_text", lambda *_: recorded)
    assert program_name() == f"uvx --from {requirement} proctor"


def test_sentences_call_the_program_as_the_shell_finds_it(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(environment.parents[1])
    sentence = with_program_name("Stop it with `proctor down`; proctor is not replaced elsewhere.")
    assert sentence == "Stop it with `.venv/bin/proctor down`; proctor is not replaced elsewhere."
