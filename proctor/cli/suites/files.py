"""YAML files of the user: a suite with the files it names, and filters for rescoring."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from pathlib import Path, PurePosixPath

import yaml

from proctor.cli.render.words import JsonValue
from proctor.client.errors import Refused
from proctor.code_files import code_files, function_file
from proctor.task_names import TaskNames, path_beside, read_task_names
from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.values.sample import MAX_SUITE_BYTES

_ROW_SUFFIXES = frozenset({".jsonl", ".json", ".csv", ".tsv", ".parquet"})
_YAML = ".yaml"
# The folder of tasks of an lm-evaluation-harness, installed or cloned.
_LM_EVAL_TASKS = ("lm_eval", "tasks")


def suite_root(path: Path, given: Path | None = None) -> Path:
    """The folder whose files a suite may have: a given one around it, lm_eval/tasks, or its own."""
    folder = path.absolute().parent
    around = [folder, *folder.parents]
    if given is None:
        return next((one for one in around if one.parts[-2:] == _LM_EVAL_TASKS), path.parent)
    if given.absolute() not in around:
        raise Refused(f"{path} does not lie in {given}: --root is a folder around it.")
    return given


def suite_document(path: Path, root: Path | None = None) -> suite_pb2.SuiteDocument:
    """The file with every file of the folder `root` that it names: rows, includes, files of tasks.

    Where `root` is not the folder of the file, the document includes the file.
    """
    root, text = root or path.parent, _decoded(path, _read(path))
    # The document is not one of its own files, although it may name a task like itself.
    sent = _SentFiles(root, {path.name: b""})
    if root.absolute() == path.absolute().parent:
        sent.collect(PurePosixPath(), text)
        del sent.files[path.name]
    else:
        text = f"include: {json.dumps(path.absolute().relative_to(root.absolute()).as_posix())}\n"
        sent = _SentFiles(root)
        sent.collect(PurePosixPath(), text)
    size = len(text.encode()) + sum(len(content) for content in sent.files.values())
    if size > MAX_SUITE_BYTES:
        raise Refused(
            f"{path.name} with its files has {size / 2**20:.1f} MiB; a suite of your own may have "
            f"{MAX_SUITE_BYTES / 2**20:.0f}. Put the rows on a hub or into the mirror and name the data set."
        )
    return suite_pb2.SuiteDocument(text=text, file_name=path.name, files=sent.files)


def filter_list(path: Path) -> list[JsonValue]:
    """A list of pipelines, or the `filter_list` of a task file. JSON is YAML."""
    try:
        document = yaml.safe_load(_read(path))
    except (yaml.YAMLError, ValueError) as error:  # ValueError: not UTF-8, or a date such as 2024-13-01
        raise Refused(f"{path} is not YAML: {error}") from error
    except RecursionError as error:
        raise Refused(f"{path} is nested too deeply.") from error
    filters = document.get("filter_list") if isinstance(document, dict) else document
    if not isinstance(filters, list):
        raise Refused(f"{path} holds no filters: write a list of pipelines, or a task with a filter_list.")
    return filters


class _Named(Enum):
    """What a text of a document may name: a file to include, a member of a group, a function, or any other
    file.
    """

    INCLUDED = auto()
    FUNCTION = auto()
    MEMBER = auto()
    OTHER = auto()


@dataclass
class _SentFiles:
    """Files by their path from `root`."""

    root: Path
    files: dict[str, bytes] = field(default_factory=dict)

    def collect(self, folder: PurePosixPath, text: str) -> None:
        """Adds what a text in a folder names: rows from `root`, YAML from beside it, tasks by their names.

        A named file that does not exist is left to the check, which reports its line.
        """
        for name, kind in _names(text):
            is_yaml = kind is _Named.INCLUDED or name.endswith(_YAML)
            if is_yaml or PurePosixPath(name).suffix in _ROW_SUFFIXES:
                self._add(path_beside(f"{folder}/x", name) if is_yaml else name, is_yaml=is_yaml)
            if kind is _Named.FUNCTION:
                self._add_code(f"{folder}/x", name)
            if kind is _Named.MEMBER:
                for task in (name, *self._task_names.tagged.get(name, ())):
                    self._add(self._task_names.files.get(task, ""), is_yaml=True)

    def _add(self, path: str, *, is_yaml: bool) -> None:
        if path in self.files or not path or not _is_inside(self.root, PurePosixPath(path)):
            return
        self.files[path] = _read(self.root / path)
        if is_yaml:
            self.collect(PurePosixPath(path).parent, _decoded(self.root / path, self.files[path]))

    def _add_code(self, named_in: str, function: str) -> None:
        path, _ = function_file(function, named_in, lambda path: _is_inside(self.root, PurePosixPath(path)))
        with suppress(OSError):
            self.files |= code_files(path, self._read_inside)

    def _read_inside(self, path: str) -> bytes:
        if not path or not _is_inside(self.root, PurePosixPath(path)):
            raise FileNotFoundError(path)
        return _read(self.root / path)

    @cached_property
    def _task_names(self) -> TaskNames:
        paths = (path.relative_to(self.root).as_posix() for path in self.root.rglob(f"*{_YAML}"))
        return read_task_names(paths, lambda path: (self.root / path).read_bytes())


def _names(text: str) -> Iterator[tuple[str, _Named]]:
    """Every one-line text of the document, which may name a file.

    An include may have any suffix; a task `x` also names `x.yaml`. The document is only composed, not
    constructed, so that tags of other tools are accepted.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return  # the check reports where
    waiting, seen = [(root, _Named.OTHER)], set[tuple[int, _Named]]()
    while waiting:
        node, kind = waiting.pop()
        if node is None or (id(node), kind) in seen:
            continue
        seen.add((id(node), kind))
        if isinstance(node, yaml.ScalarNode) and node.tag == "!function":
            yield node.value, _Named.FUNCTION
        elif isinstance(node, yaml.ScalarNode) and "\n" not in node.value:
            yield node.value, kind
            yield f"{node.value}{_YAML}", _Named.OTHER
        elif isinstance(node, yaml.SequenceNode):
            waiting.extend((item, kind) for item in node.value)
        elif isinstance(node, yaml.MappingNode):
            waiting.extend(_named_values(node, kind))


def _named_values(node: yaml.MappingNode, kind: _Named) -> Iterator[tuple[yaml.Node, _Named]]:
    """A group lists its members; a task and a group at the top say their own name."""
    keys = {key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)}
    for key, value in node.value:
        is_member = kind is _Named.MEMBER or "group" in keys
        if key.value == "include":
            yield value, _Named.INCLUDED
        elif key.value == "task" and (is_member or isinstance(value, yaml.SequenceNode)):
            yield value, _Named.MEMBER
        else:
            is_group = key.value == "group" and kind is _Named.MEMBER and "task" not in keys
            yield value, _Named.MEMBER if is_group else _Named.OTHER


def _is_inside(root: Path, path: PurePosixPath) -> bool:
    """Only files of the suite's own folder are sent; a link out of it raises Refused."""
    try:
        is_file = (root / path).is_file()
    except OSError:  # a prompt, too long for a name
        return False
    if path.is_absolute() or ".." in path.parts or not is_file:
        return False
    if not (root / path).resolve().is_relative_to(root.resolve()):
        raise Refused(f"{root / path} is a link out of the suite's folder: put the file itself there.")
    return True


def _decoded(path: Path, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Refused(f"{path}:{line}: this is not UTF-8; save the file as UTF-8.") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror or error}.") from error
