"""The runner of tests, as sandboxes get it."""

import io
from pathlib import Path
from zipimport import zipimporter

from services.common.sandboxes.sandbox import TarLimits
from services.common.sandboxes.tar_files import read_files
from services.worker.verification.pytest_runner import PACKAGES, pytest_runner


def packages(folder: Path) -> zipimporter:
    files = {file.name: file.content for file in read_files(io.BytesIO(pytest_runner()), "/", TarLimits())}
    path = folder / "packages.zip"
    path.write_bytes(files[path.name])
    return zipimporter(str(path))


def test_packages_are_compiled_with_the_paths_that_they_have_in_a_sandbox(tmp_path: Path) -> None:
    importer = packages(tmp_path)
    assert importer.get_code("pytest").co_filename == f"{PACKAGES}/pytest/__init__.py"
    assert importer.get_code("_pytest/main").co_filename == f"{PACKAGES}/_pytest/main.py"


def test_their_source_is_there_for_other_versions_of_python(tmp_path: Path) -> None:
    assert "def console_main" in (packages(tmp_path).get_source("_pytest/config") or "")
