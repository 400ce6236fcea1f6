"""YAML that users bring to the command line: filters for rescoring, and which files a suite names."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import yaml

from proctor.cli.render.documents import Json
from proctor.client.errors import Refused
from proctor.v1 import suite_service_pb2 as suite_pb2

# What the contract lets a suite with its files hold.
MAX_SUITE_BYTES = 3 * 1024 * 1024
_ROWS = frozenset({".jsonl", ".csv", ".parquet"})
_YAML = ".yaml"
_INCLUDE = "include"


def suite_document(path: Path) -> suite_pb2.SuiteDocument:
    """The file with what it names and what lies in its folder: rows, includes, files of tasks."""
    text = _decoded(path, _read(path))
    files = {path.name: b""}  # the document does not travel with itself, though a task of its name is in it
    _collect(path.parent, PurePosixPath(), text, files)
    del files[path.name]
    size = len(text.encode()) + sum(len(content) for content in files.values())
    if size > MAX_SUITE_BYTES:
        raise Refused(
            f"{path.name} with its files has {size / 2**20:.1f} MiB; a suite that is brought along may have "
            f"{MAX_SUITE_BYTES / 2**20:.0f}. Put the rows on a hub or into the mirror and name the data set.",
            "INVALID_PARAMETER",
        )
    return suite_pb2.SuiteDocument(text=text, file_name=path.name, files=files)


def filter_list(path: Path) -> list[Json]:
    """A list of pipelines, or the `filter_list` of a task file. JSON is YAML."""
    try:
        document = yaml.safe_load(_read(path))
    except (yaml.YAMLError, ValueError) as error:  # a ValueError for no UTF-8, or a 13th month
        raise Refused(f"{path} is no YAML: {error}", "INVALID_PARAMETER") from error
    except RecursionError as error:
        raise Refused(f"{path} is nested too deeply.", "INVALID_PARAMETER") from error
    filters = document.get("filter_list") if isinstance(document, dict) else document
    if not isinstance(filters, list):
        raise Refused(
            f"{path} holds no filters: write a list of pipelines, or a task with a filter_list.",
            "INVALID_PARAMETER",
        )
    return filters


def _collect(root: Path, folder: PurePosixPath, text: str, files: dict[str, bytes]) -> None:
    """Into `files`, by the path from the suite's folder, which rows are named by; YAML is named from beside.

    What is not there is left to the check, which knows the line.
    """
    for name, is_included in _names(text):
        named = PurePosixPath(name)
        is_yaml = is_included or named.suffix == _YAML
        place = folder / named if is_yaml else named
        if str(place) in files or not (is_yaml or named.suffix in _ROWS) or not _is_ours(root, place):
            continue
        files[str(place)] = _read(root / place)
        if is_yaml:
            _collect(root, place.parent, _decoded(root / place, files[str(place)]), files)


def _names(text: str) -> Iterator[tuple[str, bool]]:
    """Every single-line text of the document that may name a file; of a task, the file of its name as well.

    Includes are told apart: a file of any name can be one. Only composed, never built, so that tags of
    other tools are no obstacle.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return  # the check says where
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


def _is_ours(root: Path, place: PurePosixPath) -> bool:
    """Nothing but files of the suite's own folder leaves the machine."""
    if place.is_absolute() or ".." in place.parts or not _is_file(root / place):
        return False
    if not (root / place).resolve().is_relative_to(root.resolve()):
        raise Refused(
            f"{root / place} is a link out of the suite's folder: put the file itself there.",
            "INVALID_PARAMETER",
        )
    return True


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a prompt, too long for a name
        return False


def _decoded(path: Path, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Refused(
            f"{path}:{line}: this is no UTF-8; save the file as UTF-8.", "INVALID_PARAMETER"
        ) from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror or error}.", "INVALID_PARAMETER") from error
