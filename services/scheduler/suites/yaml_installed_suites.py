"""The suites of a folder, `<suite>/suite.yaml` or `<suite>.yaml`; files are read again when they change."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from services.scheduler.errors import SuitesFolderMissing
from services.scheduler.suites.format.suite_document import SuiteProblem
from services.scheduler.suites.format.yaml_files import SuiteFiles
from services.scheduler.suites.format.yaml_suite_reader import NameRule, read_suite
from services.scheduler.suites.ports import BrokenSuite
from services.scheduler.suites.suite import SuiteDefinition
from services.scheduler.suites.suite_errors import InvalidSuiteFile, UnknownSuite


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


def load_suites(folder: Path) -> SuiteRegistry:
    return reload_suites(SuiteRegistry(folder))


def reload_suites(registry: SuiteRegistry) -> SuiteRegistry:
    """The same registry as long as no file was changed, added or removed; else only what is new is read."""
    entries = {}
    for root in _roots(registry.folder):
        name = root.parent.name if root.name == "suite.yaml" else root.stem
        known = registry.entries.get(name)
        is_as_it_was = known is not None and known.files == _states(
            root, [state.path for state in known.files]
        )
        entries[name] = known if known is not None and is_as_it_was else load_suite(root, name)
    return registry if entries == registry.entries else SuiteRegistry(registry.folder, entries)


def load_suite(root: Path, must_be: str = "") -> SuiteEntry:
    """One suite, and which files it was made of; `must_be` is the name it has to have, "" for anything."""
    files = SuiteFiles(lambda path: (root.parent / path).read_bytes(), root.name)
    reading = read_suite(files, root.parent, NameRule(must_be))
    error = _error(root, reading.problems[0]) if reading.problems else None
    return SuiteEntry(reading.suite, error, _states(root, files.nodes))


def _error(root: Path, problem: SuiteProblem) -> InvalidSuiteFile:
    file = root.parent / problem.file if problem.file else root
    return InvalidSuiteFile(file, problem.problem, problem.key, problem.line or None)


def _roots(folder: Path) -> Iterator[Path]:
    yield from sorted(folder.glob("*.yaml"))
    yield from sorted(folder.glob("*/suite.yaml"))


def _states(root: Path, paths: Iterable[str]) -> tuple[FileState, ...]:
    """Also of files that were looked for and are not there."""
    return tuple(_state(root.parent / path, path) for path in paths)


def _state(file: Path, path: str) -> FileState:
    try:
        stat = file.stat()
    except OSError:
        return FileState(path)
    return FileState(path, stat.st_mtime_ns, stat.st_size)


class YamlInstalledSuites:
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
