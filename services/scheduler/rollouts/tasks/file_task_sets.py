"""Sets of tasks: a folder or a .tar.gz file with task folders in it, which may be hostile.

Nothing is unpacked, no link is followed, and what is read has a budget of files and bytes.
"""

import hashlib
import io
import json
import os
import stat
import tarfile
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from proctor.values.rollout import RolloutTask
from services.scheduler.rollouts.tasks import harbor_task, tb_meta_task, yaml_terminal_bench
from services.scheduler.rollouts.tasks.errors import (
    InvalidTask,
    InvalidTasks,
    NoTasks,
    TaskError,
    UnsafeFolder,
)
from services.scheduler.rollouts.tasks.task_folder import (
    MAX_TASK_BYTES,
    MAX_TASK_FILES,
    FileBudget,
    Files,
    FolderFile,
    TaskFolder,
)
from services.scheduler.rollouts.tasks.tb_meta_task import Overrides, with_variables

OverridesByFolder = Mapping[str, Overrides]
NO_OVERRIDES: OverridesByFolder = {}
_CONFIGS = (tb_meta_task.META, harbor_task.CONFIG, yaml_terminal_bench.CONFIG)
_ARCHIVES = (".tar.gz", ".tgz")
_OPENED = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BROKEN = (tarfile.TarError, ValueError, LookupError)
_LINK = "it is a link. Put a copy of the file there."
# Of the value of a variable in the name of a task.
_MAX_SHOWN = 40
# Not part of a task, wherever they lie.
_PASSED_OVER = frozenset({".git", "__pycache__", ".DS_Store"})


@dataclass(frozen=True, slots=True)
class TaskFault:
    """The folder of a task that cannot be read, by its name in the set, and why."""

    folder: str
    error: TaskError


@dataclass(frozen=True, slots=True)
class TaskFolders:
    """What is in a set: tasks and faults, sorted by their folders, and folders without the file of a task."""

    tasks: tuple[RolloutTask, ...]
    faults: tuple[TaskFault, ...] = ()
    others: tuple[str, ...] = ()

    def sound(self) -> tuple[RolloutTask, ...]:
        """The tasks, where each folder can be read. Raises TaskError, which names all that cannot."""
        if len(self.faults) > 1:
            raise InvalidTasks(tuple(fault.error for fault in self.faults))
        for fault in self.faults:
            raise fault.error
        return self.tasks


def read_path(path: Path, overrides: OverridesByFolder = NO_OVERRIDES) -> TaskFolders:
    """The tasks of a folder or of an archive. Raises TaskError where nothing can be read."""
    if path.is_dir():
        return _read_all(path.name, _folder_files(path), overrides)
    if not path.is_file() or not path.name.endswith(_ARCHIVES):
        raise UnsafeFolder(path=str(path), problem="there is no such folder or .tar.gz file.")
    with path.open("rb") as stream:
        return read_archive(stream, path.name, overrides)


def read_archive(stream: BinaryIO, name: str, overrides: OverridesByFolder = NO_OVERRIDES) -> TaskFolders:
    """`name` is for messages, and names a task that is the archive itself. Raises TaskError."""
    root = name.removesuffix(".tgz").removesuffix(".tar.gz")
    return _read_all(root, _archive_files(stream, name), overrides)


def _read_all(name: str, files: Files, overrides: OverridesByFolder) -> TaskFolders:
    """Overrides are by the names of the tasks' folders."""
    folders, others = _task_folders(name, files)
    if not folders:
        raise NoTasks(path=name)
    for other in overrides.keys() - {folder.name for folder in folders}:
        raise InvalidTask(other, "overrides", "there is no such folder.")
    found: list[_Found] = []
    faults = []
    for folder in folders:
        own = overrides.get(folder.name)
        # Packed under another name, such as one with a number.
        named = replace(folder, name=own.folder) if own and own.folder else folder
        try:
            found.append(_Found(named.name, _read(named, own), own or Overrides()))
        except TaskError as error:
            faults.append(TaskFault(named.name, error))
    tasks, repeated = _named_apart(found)
    return TaskFolders(tuple(tasks), (*faults, *repeated), tuple(others))


@dataclass(frozen=True, slots=True)
class _Found:
    """A task as it was read, with the overrides of its order."""

    folder: str
    task: RolloutTask
    overrides: Overrides


def _named_apart(found: Sequence[_Found]) -> tuple[list[RolloutTask], list[TaskFault]]:
    """Tasks of one id are named by the variables that they differ in, whatever their order is."""
    by_id: defaultdict[str, list[_Found]] = defaultdict(list)
    for each in found:
        by_id[each.task.task_id].append(each)
    tasks: dict[str, RolloutTask] = {}
    faults: list[TaskFault] = []
    for each in found:
        task_id = each.task.task_id + _difference(each, by_id[each.task.task_id])
        if task_id in tasks:
            problem = f"the id {task_id!r} is there twice."
            faults.append(TaskFault(each.folder, InvalidTask(each.folder, "task", problem)))
        else:
            tasks[task_id] = replace(each.task, task_id=task_id)
    return list(tasks.values()), faults


def _difference(one: _Found, same_id: Sequence[_Found]) -> str:
    """The variables of the order that not all of them have, else a digest of what it overrides."""
    if len(same_id) == 1:
        return ""
    variables = [dict(each.overrides.variables or {}) for each in same_id]
    own = one.overrides.variables or {}
    names = sorted(name for name in own if any(each.get(name) != own[name] for each in variables))
    shown = ", ".join(f"{name}={_shown(own[name])}" for name in names)
    is_one = len({_digest(each.overrides) for each in same_id}) == 1
    parts = [part for part in (shown, "" if is_one else _digest(one.overrides)) if part]
    return f" ({', '.join(parts)})" if parts else ""


def _digest(overrides: Overrides) -> str:
    """Of all but the variables; "" where nothing else is overridden."""
    rest = replace(overrides, variables=None, injected=overrides.injected or None, folder="", notes=())
    return "" if rest == Overrides() else _short(json.dumps(asdict(rest), sort_keys=True))


def _shown(value: str) -> str:
    """A name is one line of a table."""
    return value if value.isprintable() and len(value) <= _MAX_SHOWN else _short(value)


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _read(folder: TaskFolder, overrides: Overrides | None) -> RolloutTask:
    for path, file in folder.files.items():
        if file.problem:
            raise InvalidTask(folder.name, path, file.problem)
    size = sum(len(file.content) for file in folder.files.values())
    if len(folder.files) > MAX_TASK_FILES or size > MAX_TASK_BYTES:
        problem = f"a task has at most {MAX_TASK_FILES:,} files and {MAX_TASK_BYTES:,} bytes."
        raise InvalidTask(folder.name, "its files", problem)
    if tb_meta_task.META in folder.files:
        return tb_meta_task.read_tb_meta(folder, overrides)
    image = overrides.image if overrides else ""
    if harbor_task.CONFIG in folder.files:
        task = harbor_task.read_harbor(folder, image)
    else:
        task = yaml_terminal_bench.read_terminal_bench(folder, image)
    return task if overrides is None else with_variables(task, folder.name, overrides)


def _task_folders(name: str, files: Files) -> tuple[list[TaskFolder], list[str]]:
    """The root itself, or each folder in it, or each in the one folder that an archive often has.

    The second list names the folders beside them that are none.
    """
    if any(config in files for config in _CONFIGS):
        return [TaskFolder(name, files)], []
    inner: defaultdict[str, dict[str, FolderFile]] = defaultdict(dict)
    for path, file in files.items():
        first, slash, rest = path.partition("/")
        if slash:
            inner[first][rest] = file
    found = {first: each for first, each in inner.items() if any(config in each for config in _CONFIGS)}
    if not found and len(inner) == 1:
        [(first, each)] = inner.items()
        return _task_folders(first, each)
    return [TaskFolder(first, found[first]) for first in sorted(found)], sorted(inner.keys() - found.keys())


def _folder_files(root: Path) -> Files:
    """Read by descriptors, so that what is exchanged for a link meanwhile is not followed."""
    budget = FileBudget(str(root))
    files = {}
    for folder, names, file_names, descriptor in os.fwalk(root, follow_symlinks=False):
        names[:] = sorted(name for name in names if name not in _PASSED_OVER)
        inner = os.path.relpath(folder, root)
        for name in sorted({*names, *file_names} - _PASSED_OVER):
            path = name if inner == "." else f"{inner}/{name}"
            if stat.S_ISLNK(os.lstat(name, dir_fd=descriptor).st_mode):
                budget.take(path, 0)
                files[path] = FolderFile(b"", problem=_LINK)
            elif name in file_names:
                files[path] = _file(path, os.open(name, _OPENED, dir_fd=descriptor), budget)
    return files


def _file(path: str, descriptor: int, budget: FileBudget) -> FolderFile:
    with os.fdopen(descriptor, "rb") as stream:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            budget.take(path, 0)
            return FolderFile(b"", problem="it is not a regular file.")
        budget.take(path, facts.st_size)
        content = stream.read(facts.st_size + 1)
        if len(content) > facts.st_size:
            raise UnsafeFolder(path=budget.root, problem=f"{path} grows while it is read.")
        return FolderFile(content, bool(facts.st_mode & stat.S_IXUSR))


def _archive_files(stream: BinaryIO, name: str) -> Files:
    """Read as a stream, member by member."""
    budget = FileBudget(name)
    files = {}
    inflated = _Inflated(stream, name)
    try:
        with tarfile.open(fileobj=inflated, mode="r|") as tar:
            for member in tar:
                path = str(PurePosixPath(member.name)) if member.name not in ("", ".", "./") else ""
                if member.isdir() or not path:
                    budget.take(path or "root", 0)
                    continue
                is_kept = not _PASSED_OVER & set(path.split("/"))
                if not member.isreg() or member.issparse():
                    budget.take(path, 0)
                    problem = _LINK if member.issym() or member.islnk() else "it is not a regular file."
                    file = FolderFile(b"", problem=problem)
                else:
                    budget.take(path, member.size)
                    content = tar.extractfile(member)
                    file = FolderFile(content.read() if content else b"", bool(member.mode & 0o100))
                if is_kept:
                    files[path] = file
                tar.members.clear()  # type: ignore[attr-defined]  # a stream needs none, and keeps all
        inflated.check_end()
    # A tar of hostile headers also ends tarfile by its recursion, and by what it looks up.
    except (*_BROKEN, zlib.error, EOFError, OverflowError, RecursionError) as error:
        raise UnsafeFolder(
            path=name, problem=f"it is not a .tar.gz file ({type(error).__name__})."
        ) from error
    return files


class _Inflated(io.RawIOBase):
    """Inflates as much as is read, and no more than the budget of all headers and files."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream, self._name = stream, name
        self._inflater = zlib.decompressobj(wbits=31)
        self._left = FileBudget("").bytes_left + FileBudget("").files * 2048

    def readable(self) -> bool:
        return True

    def check_end(self) -> None:
        """Raises UnsafeFolder where the rest is missing, and zlib.error where the checksum is wrong."""
        while self.read(65_536):
            pass
        if not self._inflater.eof:
            raise UnsafeFolder(path=self._name, problem="it is not a .tar.gz file: its end is missing.")

    def read(self, size: int = -1) -> bytes:
        parts = bytearray()
        while (size < 0 or len(parts) < size) and not self._inflater.eof:
            given = self._inflater.unconsumed_tail or self._stream.read(65_536)
            if not given:
                break
            parts += self._inflater.decompress(given, 65_536 if size < 0 else size - len(parts))
            if len(parts) > self._left:
                break
        self._left -= len(parts)
        if self._left < 0:
            raise UnsafeFolder(path=self._name, problem="it is larger than a set of tasks may be.")
        return bytes(parts)
