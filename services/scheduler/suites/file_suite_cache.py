"""Suites of users, read and at hand; their files lie in a folder each, named by the digest of the content."""

import os
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from services.scheduler.errors import SuiteCacheOfAnother
from services.scheduler.suites.format.suite_document import SuiteDocument, path_problem
from services.scheduler.suites.format.yaml_suite_reader import read_document
from services.scheduler.suites.suite import SuiteDefinition
from services.scheduler.suites.suite_errors import DatasetUnavailable

MAX_AT_HAND = 200


@dataclass(frozen=True, slots=True)
class _Kept:
    """A suite, and its files with the size of each."""

    suite: SuiteDefinition
    sizes: tuple[tuple[str, int], ...]


class FileSuiteCache:
    """Folders may be shared with other processes and may be emptied at any time: they are filled again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._at_hand: OrderedDict[str, _Kept] = OrderedDict()

    def taken(self, digest: str) -> SuiteDefinition | None:
        """None where it was not put here lately, or where one of its files is gone."""
        kept = self._at_hand.pop(digest, None)
        if kept is None or any(_size(self._folder / digest / path) != size for path, size in kept.sizes):
            return None
        self._at_hand[digest] = kept
        return kept.suite

    def put(self, digest: str, document: SuiteDocument) -> SuiteDefinition:
        """As the port has it; `InvalidSuiteFile` where an older Proctor took what this one refuses."""
        folder = self._folder / digest
        reading = read_document(document, folder)
        if reading.suite is None:
            raise reading.error(document.name)
        try:
            self._unpack(folder, document)
        except OSError as error:
            reason = f"they cannot be unpacked ({error.strerror})"
            raise DatasetUnavailable(reading.suite.name, "the suite's files", [reason]) from error
        sizes = tuple((path, len(content)) for path, content in document.files.items())
        self._at_hand[digest] = _Kept(reading.suite, sizes)
        while len(self._at_hand) > MAX_AT_HAND:
            self._at_hand.popitem(last=False)
        return reading.suite

    def _unpack(self, folder: Path, document: SuiteDocument) -> None:
        if document.files:
            _make_own(self._folder)
        for path, content in document.files.items():
            _write(folder, path, content)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return -1


def _make_own(folder: Path) -> None:
    """Below a folder that others may write to, someone else may have been there first."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise SuiteCacheOfAnother(folder=str(folder))


def _write(folder: Path, path: str, content: bytes) -> None:
    """As a whole or not at all: another process may read it meanwhile."""
    if path_problem(path):
        raise ValueError(path_problem(path))
    file = folder / path
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(descriptor, "wb") as written:
        written.write(content)
    Path(part).replace(file)
