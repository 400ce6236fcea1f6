"""The folder of a task in memory: its files by their paths, within a budget of files and bytes."""

import gzip
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType

from proctor.values.rollout import MAX_PATH_BYTES, MAX_SET_BYTES, MAX_SET_FILES
from services.scheduler.rollouts.tasks.errors import InvalidTask, UnsafeFolder

# Maximum number of files and bytes of one task: a worker puts them into a sandbox at a time.
MAX_TASK_FILES = 5000
MAX_TASK_BYTES = 64 * 1024 * 1024
_PROGRAM_MODE, _FILE_MODE = 0o755, 0o644


@dataclass(frozen=True, slots=True)
class FolderFile:
    """`problem` says why the content is not there."""

    content: bytes
    is_program: bool = False
    problem: str = ""


Files = Mapping[str, FolderFile]


@dataclass(frozen=True, slots=True)
class TaskFolder:
    """`files` by relative paths with slashes; `name` is that of the folder."""

    name: str
    files: Files

    def text(self, path: str) -> str:
        """Raises InvalidTask where the file is missing or no UTF-8."""
        file = self.files.get(path)
        if file is None:
            raise InvalidTask(self.name, path, "the file is missing.")
        try:
            return file.content.decode()
        except UnicodeDecodeError as error:
            raise InvalidTask(self.name, path, "it is not UTF-8 text.") from error

    def below(self, folder: str) -> Files:
        """The files of a subfolder, by their paths in it."""
        prefix = f"{folder.rstrip('/')}/"
        return MappingProxyType(
            {path.removeprefix(prefix): file for path, file in self.files.items() if path.startswith(prefix)}
        )


def path_problem(path: str) -> str:
    """Why a relative path is refused; empty where it is a plain path inside its folder."""
    parts = path.split("/")
    if not path or path.startswith("/") or ".." in parts or "\\" in path:
        return f"the path {path[:100]!r} leaves its folder."
    if any(part in ("", ".") for part in parts) or not path.isprintable():
        return f"{path[:100]!r} is not a plain path."
    return f"the path {path[:60]!r}… is too long." if len(path.encode()) > MAX_PATH_BYTES else ""


def relative_to(path: str, folder: str) -> str | None:
    """The path of an absolute path in an absolute folder; None where it lies outside."""
    inner = PurePosixPath(path)
    return str(inner.relative_to(folder)) if inner.is_relative_to(folder) else None


@dataclass(slots=True)
class FileBudget:
    """Counts what is read of a set of tasks. `root` is for messages only."""

    root: str
    files: int = MAX_SET_FILES
    bytes_left: int = MAX_SET_BYTES

    def take(self, path: str, size: int) -> None:
        """Raises UnsafeFolder over the budget, or for a path that leaves the folder."""
        if problem := path_problem(path):
            raise UnsafeFolder(path=self.root, problem=problem)
        self.files -= 1
        self.bytes_left -= size
        if self.files < 0:
            raise UnsafeFolder(path=self.root, problem=f"it has more than {MAX_SET_FILES:,} files.")
        if self.bytes_left < 0:
            raise UnsafeFolder(path=self.root, problem=f"its files have more than {MAX_SET_BYTES:,} bytes.")


def bundle_of(files: Files) -> bytes:
    """A tar of the files, compressed: the same files give the same bytes. Empty where there is none."""
    if not files:
        return b""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in sorted(files):
            member = tarfile.TarInfo(path)
            member.size = len(files[path].content)
            member.mode = _PROGRAM_MODE if files[path].is_program else _FILE_MODE
            tar.addfile(member, io.BytesIO(files[path].content))
    return packed.getvalue()
