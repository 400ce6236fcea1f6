"""Cache of users' suites: definitions in memory, data files in a folder named by the content's digest."""

import os
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from services.scheduler.suites.errors import RowsUnavailable
from services.scheduler.suites.format.suite_document import SuiteDocument, path_problem
from services.scheduler.suites.format.yaml_suite_reader import read_document
from services.scheduler.suites.own_folder import make_own_folder
from services.scheduler.suites.suite import SuiteDefinition

# Bounds the memory; a suite that is pushed out is read again when it is needed.
MAX_CACHED = 200


@dataclass(frozen=True, slots=True)
class _Cached:
    """A suite and the sizes of its files."""

    suite: SuiteDefinition
    sizes: tuple[tuple[str, int], ...]


class FileSuiteCache:
    """The folder may be shared with other processes and emptied at any time; files are then written again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cached: OrderedDict[str, _Cached] = OrderedDict()

    def get(self, digest: str) -> SuiteDefinition | None:
        """Returns None if the suite was evicted or one of its files is missing."""
        cached = self._cached.pop(digest, None)
        if cached is None or any(_size(self._folder / digest / path) != size for path, size in cached.sizes):
            return None
        self._cached[digest] = cached
        return cached.suite

    def put(self, digest: str, document: SuiteDocument) -> SuiteDefinition:
        """Raises `InvalidSuiteFile` if only an older Proctor accepted the document, `RowsUnavailable`."""
        folder = self._folder / digest
        reading = read_document(document, folder=folder)
        if reading.suite is None:
            raise reading.error(document.name)
        try:
            self._unpack(folder, document)
        except OSError as error:
            reason = f"they cannot be unpacked ({error.strerror})"
            raise RowsUnavailable(reading.suite.name, "the suite's files", [reason]) from error
        sizes = tuple((path, len(content)) for path, content in document.files.items())
        self._cached[digest] = _Cached(reading.suite, sizes)
        while len(self._cached) > MAX_CACHED:
            self._cached.popitem(last=False)
        return reading.suite

    def _unpack(self, folder: Path, document: SuiteDocument) -> None:
        if document.files:
            make_own_folder(self._folder, "PROCTOR_SCHEDULER_SUITE_CACHE_DIR")
        for path, content in document.files.items():
            _write(folder, path, content)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return -1


def _write(folder: Path, path: str, content: bytes) -> None:
    """Writes the file atomically: another process may read it at the same time."""
    if path_problem(path):
        raise ValueError(path_problem(path))
    file = folder / path
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(descriptor, "wb") as written:
        written.write(content)
    Path(part).replace(file)
