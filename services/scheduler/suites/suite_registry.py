"""The suites there are. A broken file breaks its own suite only: asking for that one tells what is wrong."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from services.scheduler.suites.suite_errors import InvalidSuiteFile, UnknownSuite
from services.scheduler.suites.task_definition import SuiteDefinition

Fingerprint = tuple[tuple[str, int, int], ...]
"""Path, time of change in nanoseconds and size of every file that was read."""


@dataclass(frozen=True, slots=True)
class SuiteRegistry:
    folder: Path
    suites: Mapping[str, SuiteDefinition] = field(default_factory=dict)
    broken: Mapping[str, InvalidSuiteFile] = field(default_factory=dict)
    fingerprint: Fingerprint = ()

    def suite(self, name: str) -> SuiteDefinition:
        if name in self.suites:
            return self.suites[name]
        if name in self.broken:
            raise self.broken[name].with_traceback(None)
        raise UnknownSuite(name, self.names())

    def names(self) -> list[str]:
        """The suites that can be run, in alphabetical order."""
        return sorted(self.suites)
