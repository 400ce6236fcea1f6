"""Programs of CI fail where they should: an audit that looks up nothing, a release without figures."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

CI = Path(__file__).parents[3] / ".ci"


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"ci_{name}", CI / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The exit code of an audit, where pip-audit has found these dependencies."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    def run(*dependencies: dict[str, object], options: tuple[str, ...] = ()) -> int:
        (tmp_path / "found.json").write_text(json.dumps({"dependencies": dependencies}))
        pip_audit = tmp_path / "pip-audit"
        pip_audit.write_text(f"#!/bin/sh\ncat {tmp_path / 'found.json'}\n")
        pip_audit.chmod(0o755)
        code: int = program("audit").main([*options, "constraints.txt"])
        return code

    return run


KNOWN = {"name": "a", "version": "1.0", "vulns": []}
UNKNOWN = {"name": "b", "skip_reason": "no answer"}
WEAK = {"name": "c", "version": "2.0", "vulns": [{"id": "CVE-1", "fix_versions": ["2.1"]}]}


@pytest.mark.parametrize(
    ("dependencies", "options", "code"),
    [
        ([KNOWN], (), 0),
        ([WEAK], (), 1),
        ([WEAK], ("--offline",), 1),
        ([KNOWN, UNKNOWN], (), 1),
        ([UNKNOWN], (), 1),
        ([UNKNOWN], ("--offline",), 0),
    ],
)
def test_an_audit_fails_by_an_advisory_and_where_it_looked_up_nothing(
    audit: Any,
    capsys: pytest.CaptureFixture[str],
    dependencies: list[dict[str, object]],
    options: tuple[str, ...],
    code: int,
) -> None:
    assert audit(*dependencies, options=options) == code
    said = capsys.readouterr().out
    assert ("CVE-1, mended in 2.1" in said) is (WEAK in dependencies)
    assert ("1 could not be looked up" in said) is (UNKNOWN in dependencies)


def tried(tmp_path: Path, summary: dict[str, object], text: str = "Its page: http://x/") -> int:
    run, said = tmp_path / "run.json", tmp_path / "said.txt"
    run.write_text(json.dumps({"summary": summary}))
    said.write_text(text)
    code: int = program("tried").main([str(run), str(said)])
    return code


def summary(answered: int, failed: int, *means: float | None) -> dict[str, object]:
    return {
        "answered": answered,
        "failed": failed,
        "tasks": [{"metrics": [{"mean": mean} for mean in means]}],
    }


def test_a_run_of_the_installed_package_needs_answers_and_figures(tmp_path: Path) -> None:
    assert tried(tmp_path, summary(50, 0, 0.5, None)) == 0
    assert tried(tmp_path, summary(49, 1, 0.5)) == 1
    assert tried(tmp_path, summary(0, 0, 0.5)) == 1
    assert tried(tmp_path, summary(50, 0, None)) == 1
    assert tried(tmp_path, summary(50, 0)) == 1


def test_a_text_of_the_installed_package_that_names_make_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tried(tmp_path, summary(50, 0, 0.5), "It makes all.\nCall `make vllm`.") == 1
    assert "said.txt:2: the installed package names make: Call `make vllm`." in capsys.readouterr().err
