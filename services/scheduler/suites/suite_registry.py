"""The suites there are. A broken file breaks its own suite only: asking for that one tells what is wrong."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from services.scheduler.suites.suite_errors import InvalidSuiteFile, UnknownSuite
from services.scheduler.suites.task_definition import SuiteDefinition


@dataclass(frozen=True, slots=True)
class FileState:
    """A file by its path in the folder: when it was changed and how large it is, 0 and -1 where it is not."""

    path: str
    changed_ns: int = 0
    size: int = -1


@dataclass(frozen=True, slots=True)
class SuiteEntry:
    """A suite or what is wrong with it, and the files that were looked for to find out."""

    suite: SuiteDefinition | None
    error: InvalidSuiteFile | None
    files: tuple[FileState, ...]


@dataclass(frozen=True, slots=True)
class SuiteRegistry:
    folder: Path
    entries: Mapping[str, SuiteEntry] = field(default_factory=dict)

    @property
    def suites(self) -> Mapping[str, SuiteDefinition]:
        return {name: entry.suite for name, entry in self.entries.items() if entry.suite is not None}

    @property
    def broken(self) -> Mapping[str, InvalidSuiteFile]:
        return {name: entry.error for name, entry in self.entries.items() if entry.error is not None}

    def suite(self, name: str) -> SuiteDefinition:
        if name in self.suites:
            return self.suites[name]
        if name in self.broken:
            raise self.broken[name].with_traceback(None)
        raise UnknownSuite(name, self.names())

    def names(self) -> list[str]:
        """The suites that can be run, in alphabetical order."""
        return sorted(self.suites)
