"""The suites of a folder: `<suite>/suite.yaml` or `<suite>.yaml`, read again where files were changed."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from services.scheduler.suites.format.suite_document import SuiteProblem
from services.scheduler.suites.format.yaml_files import SuiteFiles
from services.scheduler.suites.format.yaml_suite_reader import NameRule, read_suite
from services.scheduler.suites.suite_errors import InvalidSuiteFile
from services.scheduler.suites.suite_registry import FileState, SuiteEntry, SuiteRegistry


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
    return SuiteEntry(reading.suite, error, _states(root, files.asked))


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
