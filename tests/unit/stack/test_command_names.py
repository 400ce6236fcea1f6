"""Another package with the command or the import package `proctor` is found and named."""

import subprocess
import sys
from pathlib import Path

import pytest

from proctor import launch
from proctor.stack.doctor.command_names import examine_command, examine_import_package
from proctor.stack.doctor.finding import Severity

OURS = "#!/usr/bin/python3\nimport sys\nfrom proctor.launch import main\nsys.exit(main())\n"


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.fixture
def folder_of_another(tmp_path: Path) -> Path:
    folder = tmp_path / "another"
    program(folder, "proctor", OURS.replace("proctor.launch", "proctor.cli"))
    return folder


def test_own_command_of_any_environment_is_fine(tmp_path: Path) -> None:
    program(tmp_path / "bin", "proctor", OURS)
    finding = examine_command(str(tmp_path / "bin"))
    assert (finding.severity, finding.message) == (Severity.OK, str(tmp_path / "bin" / "proctor"))
    assert examine_command(str(tmp_path)).severity is Severity.OK


def test_command_of_another_package_is_named_with_what_to_call(
    tmp_path: Path, folder_of_another: Path
) -> None:
    program(tmp_path / "bin", "proctor", OURS)
    program(tmp_path / "bin", "proctor-eval", OURS)
    finding = examine_command(f"{folder_of_another}:{tmp_path / 'bin'}")
    assert finding.severity is Severity.WARNING
    assert finding.message.startswith(str(folder_of_another))
    assert finding.advice == f"call {tmp_path / 'bin' / 'proctor-eval'} instead"


def test_import_package_of_another_distribution_is_named() -> None:
    assert examine_import_package() == []
    [finding] = examine_import_package(["their-package"])
    assert finding.severity is Severity.WARNING
    assert "their-package" in finding.message


def test_command_that_another_package_hides_says_so(tmp_path: Path) -> None:
    """In one environment the files of both lie in one folder, and a module hides the folder of its name."""
    ours = Path(launch.__file__).parent
    (tmp_path / "proctor").mkdir()
    for name in ("launch.py", "distribution.py"):
        (tmp_path / "proctor" / name).symlink_to(ours / name)
    (tmp_path / "proctor" / "cli").symlink_to(ours / "cli")
    (tmp_path / "proctor" / "cli.py").write_text("def main() -> None: ...\n")
    (tmp_path / "proctor" / "__init__.py").touch()
    record = tmp_path / "their_package-1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (record / "RECORD").write_text("proctor/__init__.py,,\nproctor/cli.py,,\n")
    command = (sys.executable, "-c", "from proctor.launch import main; main()", "--version")
    ended = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("The import package proctor of their-package hides Proctor's in ")
