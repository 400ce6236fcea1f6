"""The suites of a folder, read again when their files change."""

from pathlib import Path

import pytest

from services.scheduler.suites.errors import SuitesFolderMissing
from services.scheduler.suites.ports import BrokenSuite
from services.scheduler.suites.suite_errors import InvalidSuiteFile
from services.scheduler.suites.yaml_installed_suites import YamlInstalledSuites
from tests.harness.keyed_suite import SUITE, write_keyed_suite


def test_missing_folder_is_refused_with_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(SuitesFolderMissing, match="PROCTOR_SCHEDULER_SUITES_DIR"):
        YamlInstalledSuites(tmp_path / "nowhere")


def test_suite_that_is_added_later_is_found(tmp_path: Path) -> None:
    catalogue = YamlInstalledSuites(tmp_path)
    assert catalogue.suites() == []
    write_keyed_suite(tmp_path, 3, is_long=False)
    assert catalogue.suite(SUITE).name == SUITE


def test_broken_suite_is_listed_with_its_problem(tmp_path: Path) -> None:
    write_keyed_suite(tmp_path, 3, is_long=False)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "suite.yaml").write_text("suite: [")
    catalogue = YamlInstalledSuites(tmp_path)
    broken, whole = catalogue.suites()
    assert isinstance(broken, BrokenSuite)
    assert "suite.yaml" in broken.problem
    assert whole.name == SUITE
    with pytest.raises(InvalidSuiteFile):
        catalogue.suite("broken")
