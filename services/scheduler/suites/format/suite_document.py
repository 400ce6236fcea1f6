"""A suite as its author wrote it: one YAML text, its data files, and the faults found in them."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from services.scheduler.suites.errors import InvalidSuiteFile
from services.scheduler.suites.suite import SuiteDefinition

MAX_FILES = 500
# Maximum bytes of a path and of each name in it: what file systems take, with room for the folder it lies in.
MAX_PATH_BYTES = 1024
MAX_NAME_BYTES = 200

# Keys and indexes that lead to a value.
KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class ValueFault:
    """A fault of a value, by its path within a task or a suite."""

    path: KeyPath
    problem: str


@dataclass(frozen=True, slots=True)
class SuiteFault:
    """A fault for the author. `file` "" is the document itself. `line` counts from 1; 0 is unknown."""

    problem: str
    file: str = ""
    line: int = 0
    field: str = ""


@dataclass(frozen=True, slots=True)
class SuiteDocument:
    """`files` by the paths that the text refers to; `file_name` is the author's name of the document."""

    text: str
    file_name: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the document in messages."""
        return self.file_name or "the document"

    @property
    def size_bytes(self) -> int:
        return len(self.text.encode()) + sum(len(content) for content in self.files.values())

    @property
    def digest(self) -> str:
        """SHA-256 over text and files, each as a netstring, so the boundaries are unambiguous."""
        digest = hashlib.sha256()
        for part in (self.text.encode(), *_parts(self.files)):
            digest.update(b"%d:%b" % (len(part), part))
        return digest.hexdigest()


def _parts(files: Mapping[str, bytes]) -> Sequence[bytes]:
    return [part for path in sorted(files) for part in (path.encode(), files[path])]


def path_problem(path: str) -> str:
    """Returns why a path is not allowed, "" if it is: it must stay inside the suite's folder."""
    parts = PurePosixPath(path).parts
    if not path or path.startswith("/") or ".." in parts or "\\" in path or ":" in path:
        return f"{path!r} does not lie in the suite's folder"
    # A lone surrogate, which code and YAML can write, is in no name of a file.
    has_form = not any(character < " " or "\ud800" <= character <= "\udfff" for character in path)
    if not has_form or parts != tuple(path.split("/")):
        return f"{path!r} is not a plain path"
    if max(len(part.encode()) for part in parts) > MAX_NAME_BYTES or len(path.encode()) > MAX_PATH_BYTES:
        return (
            f"'{path[:40]}…' is too long: a path has {MAX_PATH_BYTES} bytes at most, a name {MAX_NAME_BYTES}"
        )
    return ""


def file_faults(paths: Iterable[str]) -> Iterator[SuiteFault]:
    """Problems with the paths of a document's files."""
    files = frozenset(paths)
    for path in sorted(files):
        folder = next((str(parent) for parent in PurePosixPath(path).parents if str(parent) in files), "")
        if path_problem(path):
            yield SuiteFault(path_problem(path), file=path)
        elif folder:
            yield SuiteFault(f"{folder!r} is a file, so nothing can lie in it", file=path)


@dataclass(frozen=True, slots=True)
class SuiteReading:
    """`faults` are sorted by line; `suite` is None if there are any."""

    suite: SuiteDefinition | None
    faults: tuple[SuiteFault, ...]

    def error(self, document_name: str) -> InvalidSuiteFile:
        """The first fault as an error; there must be one."""
        first = self.faults[0]
        file = Path(first.file or document_name)
        return InvalidSuiteFile(file, first.problem, first.field, first.line or None)
