"""The suites of a folder as their files are now: read again when one was changed."""

from collections.abc import Sequence
from pathlib import Path

from services.scheduler.errors import SuitesFolderMissing
from services.scheduler.suites.format.yaml_suites import load_suites, reload_suites
from services.scheduler.suites.ports import BrokenSuite
from services.scheduler.suites.task_definition import SuiteDefinition


class YamlSuiteCatalogue:
    """Reads the folder at once and looks for changes whenever it is asked."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise SuitesFolderMissing(folder=str(folder))
        self._registry = load_suites(folder)

    def names(self) -> frozenset[str]:
        self._registry = reload_suites(self._registry)
        return frozenset(self._registry.entries)

    def usable_names(self) -> Sequence[str]:
        self._registry = reload_suites(self._registry)
        return self._registry.names()

    def suite(self, name: str) -> SuiteDefinition:
        self._registry = reload_suites(self._registry)
        return self._registry.suite(name)

    def suites(self) -> Sequence[SuiteDefinition | BrokenSuite]:
        self._registry = reload_suites(self._registry)
        broken = [BrokenSuite(name, str(error)) for name, error in self._registry.broken.items()]
        return sorted([*self._registry.suites.values(), *broken], key=lambda suite: suite.name)
