"""YAML files of the user: a suite with the files it names, and filters for rescoring."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import yaml

from proctor.cli.render.words import JsonValue
from proctor.client.errors import Refused
from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.values.sample import MAX_SUITE_BYTES

_ROW_SUFFIXES = frozenset({".jsonl", ".csv", ".parquet"})
_YAML = ".yaml"
_INCLUDE = "include"


def suite_document(path: Path) -> suite_pb2.SuiteDocument:
    """The file with every file of its folder that it names: rows, includes, files of tasks."""
    text = _decoded(path, _read(path))
    # The document is not one of its own files, although it may name a task like itself.
    files = {path.name: b""}
    _collect(path.parent, PurePosixPath(), text, files)
    del files[path.name]
    size = len(text.encode()) + sum(len(content) for content in files.values())
    if size > MAX_SUITE_BYTES:
        raise Refused(
            f"{path.name} with its files has {size / 2**20:.1f} MiB; a suite of your own may have "
            f"{MAX_SUITE_BYTES / 2**20:.0f}. Put the rows on a hub or into the mirror and name the data set."
        )
    return suite_pb2.SuiteDocument(text=text, file_name=path.name, files=files)


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


def _collect(root: Path, folder: PurePosixPath, text: str, files: dict[str, bytes]) -> None:
    """Adds to `files`, keyed by the path from `root`. Rows are named from `root`, YAML from beside its file.

    A named file that does not exist is left to the check, which reports its line.
    """
    for name, is_included in _names(text):
        named = PurePosixPath(name)
        is_yaml = is_included or named.suffix == _YAML
        path = folder / named if is_yaml else named
        is_wanted = is_yaml or named.suffix in _ROW_SUFFIXES
        if str(path) in files or not is_wanted or not _is_inside(root, path):
            continue
        files[str(path)] = _read(root / path)
        if is_yaml:
            _collect(root, path.parent, _decoded(root / path, files[str(path)]), files)


def _names(text: str) -> Iterator[tuple[str, bool]]:
    """Every one-line text of the document, which may name a file, and whether it is an include.

    An include may have any suffix; a task `x` also names `x.yaml`. The document is only composed, not
    constructed, so that tags of other tools are accepted.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return  # the check reports where
    waiting, seen = [(root, False)], set[tuple[int, bool]]()
    while waiting:
        node, is_included = waiting.pop()
        if node is None or (id(node), is_included) in seen:
            continue
        seen.add((id(node), is_included))
        if isinstance(node, yaml.ScalarNode) and "\n" not in node.value:
            yield node.value, is_included
            yield f"{node.value}{_YAML}", False
        elif isinstance(node, yaml.SequenceNode):
            waiting.extend((item, is_included) for item in node.value)
        elif isinstance(node, yaml.MappingNode):
            waiting.extend((value, key.value == _INCLUDE) for key, value in node.value)


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
