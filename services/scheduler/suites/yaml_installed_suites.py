"""The suites of a folder, `<suite>/suite.yaml` or `<suite>.yaml`; files are read again when they change."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from services.common.errors import InvalidSetting
from services.scheduler.suites.errors import InvalidSuiteFile, UnknownSuite, listed
from services.scheduler.suites.format.suite_document import SuiteFault
from services.scheduler.suites.format.yaml_files import SuiteFiles
from services.scheduler.suites.format.yaml_suite_reader import NameRule, read_suite
from services.scheduler.suites.ports import BrokenSuite
from services.scheduler.suites.suite import SuiteDefinition


@dataclass(frozen=True, slots=True)
class FileState:
    """A file by its path in the folder, with time of change and size; 0 and -1 if it is missing."""

    path: str
    changed_ns: int = 0
    size: int = -1


@dataclass(frozen=True, slots=True)
class SuiteEntry:
    """A suite or its error, and the state of every file that was looked up for it."""

    suite: SuiteDefinition | None
    error: InvalidSuiteFile | None
    files: tuple[FileState, ...]


@dataclass(frozen=True, slots=True)
class SuiteRegistry:
    """The suites of a folder at one moment. A broken file breaks only its own suite."""

    folder: Path
    entries: Mapping[str, SuiteEntry] = field(default_factory=dict)

    @property
    def suites(self) -> Mapping[str, SuiteDefinition]:
        return {name: entry.suite for name, entry in self.entries.items() if entry.suite is not None}

    @property
    def broken(self) -> Mapping[str, InvalidSuiteFile]:
        return {name: entry.error for name, entry in self.entries.items() if entry.error is not None}

    def suite(self, name: str) -> SuiteDefinition:
        """Raises `UnknownSuite`, `InvalidSuiteFile`."""
        if name in self.suites:
            return self.suites[name]
        if name in self.broken:
            raise self.broken[name].with_traceback(None)
        raise UnknownSuite(suite=name, supported=listed(self.names()))

    def names(self) -> list[str]:
        """Names of the valid suites, in alphabetical order."""
        return sorted(self.suites)


def load_suites(folder: Path) -> SuiteRegistry:
    return reload_suites(SuiteRegistry(folder))


def reload_suites(registry: SuiteRegistry) -> SuiteRegistry:
    """Reads changed suites again. Returns the same registry if no file was changed, added or removed."""
    entries = {}
    for root in [*sorted(registry.folder.glob("*.yaml")), *sorted(registry.folder.glob("*/suite.yaml"))]:
        name = root.parent.name if root.name == "suite.yaml" else root.stem
        known = registry.entries.get(name)
        is_unchanged = known and known.files == _states(root, [state.path for state in known.files])
        entries[name] = known if known and is_unchanged else _load_suite(root, name)
    return registry if entries == registry.entries else SuiteRegistry(registry.folder, entries)


def _load_suite(root: Path, name: str) -> SuiteEntry:
    files = SuiteFiles(
        lambda path: (root.parent / path).read_bytes(), root.name, lambda: _yaml_files(root.parent)
    )
    reading = read_suite(files, root.parent, NameRule(must_be=name))
    error = _error(root, reading.faults[0]) if reading.faults else None
    return SuiteEntry(reading.suite, error, _states(root, {**files.nodes, **files.code}))


def _yaml_files(folder: Path) -> Iterable[str]:
    return (path.relative_to(folder).as_posix() for path in folder.rglob("*.yaml"))


def _error(root: Path, fault: SuiteFault) -> InvalidSuiteFile:
    file = root.parent / fault.file if fault.file else root
    return InvalidSuiteFile(file, fault.problem, fault.field, fault.line or None)


def _states(root: Path, paths: Iterable[str]) -> tuple[FileState, ...]:
    return tuple(_state(root.parent / path, path) for path in paths)


def _state(file: Path, path: str) -> FileState:
    try:
        stat = file.stat()
    except OSError:
        return FileState(path)
    return FileState(path, stat.st_mtime_ns, stat.st_size)


class YamlInstalledSuites:
    """Reads the folder when it is created; each call picks up changes."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise InvalidSetting(setting="PROCTOR_SCHEDULER_SUITES_DIR", problem=f"{folder} is not a folder")
        self._registry = load_suites(folder)

    def names(self) -> frozenset[str]:
        return frozenset(self._current().entries)

    def usable_names(self) -> Sequence[str]:
        return self._current().names()

    def suite(self, name: str) -> SuiteDefinition:
        return self._current().suite(name)

    def suites(self) -> Sequence[SuiteDefinition | BrokenSuite]:
        registry = self._current()
        broken = [BrokenSuite(name, str(error)) for name, error in registry.broken.items()]
        return sorted([*registry.suites.values(), *broken], key=lambda suite: suite.name)

    def _current(self) -> SuiteRegistry:
        self._registry = reload_suites(self._registry)
        return self._registry
