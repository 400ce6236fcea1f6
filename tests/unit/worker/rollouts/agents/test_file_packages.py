"""Packages of a Dockerfile from the operator's wheels: chosen for the sandbox's Python, unpacked once."""

import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from services.worker.rollouts.programs.file_packages import FilePackages
from services.worker.rollouts.programs.processes_python import SandboxPython, sandbox_python
from services.worker.rollouts.programs.unpacked_folders import UnpackedFolders
from services.worker.verification.file_wheels import SETTING


def wheel(folder: Path, name: str, version: str, *requires: str, tag: str = "py3-none-any") -> None:
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-{tag}.whl", "w") as files:
        files.writestr(f"{name}.py", f"version = {version!r}\n")
        files.writestr(
            f"{info}/METADATA",
            f"Name: {name}\nVersion: {version}\n" + "".join(f"Requires-Dist: {each}\n" for each in requires),
        )


def python() -> SandboxPython:
    return replace(sandbox_python(), installed={"There_of-Test": "1.0"})


def packages(folder: Path, wheels: Path | None) -> FilePackages:
    return FilePackages(wheels, UnpackedFolders(folder / "unpacked"), is_shown=True, python=python)


def versions(folder: str) -> dict[str, str]:
    return {path.stem: path.read_text().split("'")[1] for path in Path(folder, "lib").glob("*.py")}


WANTED = {
    "one_of_test": {"one_of_test": "2.0"},
    "one_of_test<2": {"one_of_test": "1.0"},
    "One.of-Test==1.0": {"one_of_test": "1.0"},
    "two_of_test": {"two_of_test": "1", "one_of_test": "1.0"},
    "two_of_test[more]": {"two_of_test": "1", "one_of_test": "1.0", "extra_of_test": "1"},
    "one_of_test; python_version < '3'": {},
    "pip": {},
    "there-of-test": {},
}


@pytest.mark.parametrize("package", WANTED)
def test_wheels_are_chosen_with_all_that_they_require(tmp_path: Path, package: str) -> None:
    wheels = tmp_path / "wheels"
    wheel(wheels, "one_of_test", "1.0")
    wheel(wheels, "one_of_test", "2.0")
    wheel(wheels, "one_of_test", "3.0", tag="cp26-cp26-win32")
    wheel(
        wheels,
        "two_of_test",
        "1",
        "one-of-test==1.0",
        "extra_of_test; extra == 'more'",
        "nosuch; extra == 'x'",
    )
    wheel(wheels, "extra_of_test", "1")
    found = packages(tmp_path, wheels).find([package])
    assert (versions(found.folder) if found.folder else {}) == WANTED[package]
    assert not found.notes
    assert not found.missing


def test_other_versions_and_missing_packages_are_named(tmp_path: Path) -> None:
    wheel(tmp_path / "wheels", "one_of_test", "1.0", "deep-of-test>=3")
    asked = ["one_of_test==5", "there-of-test==7", "no-such==1", "%"]
    found = packages(tmp_path, tmp_path / "wheels").find(asked)
    assert versions(found.folder) == {"one_of_test": "1.0"}
    others = ("one-of-test 1.0 for one_of_test==5", "there-of-test 1.0 for there-of-test==7")
    missing = ("no-such==1", "%", "deep-of-test>=3")
    assert found.notes == (
        f"packages of RUN in other versions: {', '.join(others)}",
        f"packages of RUN that are not there ({SETTING} names no wheel of them): {', '.join(missing)}",
    )
    assert found.lacks("no_such")
    assert found.lacks("Deep.of.test")
    assert not found.lacks("one_of_test")


def test_packages_are_missing_where_no_folder_can_be_shown(tmp_path: Path) -> None:
    elsewhere = replace(packages(tmp_path, tmp_path), is_shown=False)
    assert elsewhere.find([]).notes == ()
    [note] = elsewhere.find(["a==1"]).notes
    assert note == "packages of RUN that are not there (only sandboxes of processes have them): a==1"
    [note] = packages(tmp_path, tmp_path / "nowhere").find(["a==1"]).notes
    assert "nowhere, which PROCTOR_WORKER_VERIFIER_WHEELS names" in note
    assert packages(tmp_path, None).find(["a==1"]).lacks("a")


def test_a_set_is_unpacked_once_and_its_wheels_are_shared(tmp_path: Path) -> None:
    wheel(tmp_path / "wheels", "one_of_test", "1.0")
    wheel(tmp_path / "wheels", "two_of_test", "1")
    files = packages(tmp_path, tmp_path / "wheels")
    both = files.find(["one_of_test", "two_of_test"]).folder
    one = files.find(["one_of_test"]).folder
    assert files.find(["one_of_test"]).folder == one != both
    module = Path(one, "lib", "one_of_test.py")
    assert module.samefile(Path(both, "lib", "one_of_test.py"))
    assert list(Path(one, "lib", "__pycache__").glob("one_of_test.*.pyc"))
    program = sandbox_python().program
    code = "import one_of_test, two_of_test; print(two_of_test.version)"
    command = [program, "-c", code]
    ran = subprocess.run(
        command, env={"PYTHONPATH": f"{both}/lib"}, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "1\n"
