"""Names that YAML files declare for lm-evaluation-harness: of a task or a group, and tags of tasks.

Only the keys at the top that say so are parsed: a folder of it has more than ten thousand files.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import yaml

# Includes of includes; a circle ends here.
MAX_INCLUDES = 20
_KEYS = ("task", "group", "class", "tag", "include")
_BEGIN = re.compile(rf"""["']?(?:{"|".join(_KEYS)})["']?\s*:""")
_CONTINUED = re.compile(r"[ \t#-]|$")

ReadFile = Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class TaskNames:
    """Paths of files by the task or group that they declare, and names of tasks by tag, sorted."""

    files: Mapping[str, str] = field(default_factory=dict)
    tagged: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def path_beside(file: str, name: str) -> str:
    """The path of a file that another one names from beside itself; ".." begins one outside of the root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(file), name)) if name else name


def read_task_names(paths: Iterable[str], read: ReadFile) -> TaskNames:
    """As lm-evaluation-harness: of files with one name the first one counts; broken ones have none."""
    reader = _Reader(read)
    files: dict[str, str] = {}
    tagged: dict[str, set[str]] = {}
    for path in sorted(path for path in paths if path.endswith(".yaml")):
        found = reader.declared(path)
        if found.name and files.setdefault(found.name, path) == path:
            for tag in found.tags if found.is_task else ():
                tagged.setdefault(tag, set()).add(found.name)
    return TaskNames(files, {tag: tuple(sorted(names)) for tag, names in tagged.items()})


@dataclass(frozen=True, slots=True)
class _Declared:
    name: str = ""
    is_task: bool = True
    tags: tuple[str, ...] = ()


@dataclass
class _Reader:
    """Reads each file once: thousands of tasks include one."""

    read: ReadFile
    _known: dict[str, _Declared] = field(default_factory=dict)

    def declared(self, path: str, depth: int = 0) -> _Declared:
        if path not in self._known:
            self._known[path] = self._read(path, depth)
        return self._known[path]

    def _read(self, path: str, depth: int) -> _Declared:
        try:
            fields = _top_fields(self.read(path).decode("utf-8-sig"))
        except (OSError, ValueError, yaml.YAMLError, RecursionError):
            return _Declared()
        low = _Declared()
        for name in _texts(fields.get("include")) if depth < MAX_INCLUDES else ():
            below = self.declared(path_beside(path, name), depth + 1)
            low = replace(below, name=below.name or low.name, tags=below.tags or low.tags)
        is_task = "class" in fields or ("group" not in fields and low.is_task)
        names = _texts(fields.get("task" if is_task else "group"))
        tags = tuple(_texts(fields["tag"])) if "tag" in fields else low.tags
        return _Declared(names[0] if len(names) == 1 else low.name, is_task, tags)


def _texts(value: object) -> list[str]:
    return [str(one) for one in (value if isinstance(value, list) else [value]) if isinstance(one, str | int)]


def _top_fields(text: str) -> dict[str, object]:
    """The values of `_KEYS` at the top of a file, read from their lines, or where that fails from all."""
    lines = "".join(_lines_of_keys(text)) if not text.lstrip().startswith(("{", "?", "%")) else text
    try:
        fields = yaml.load(lines, Loader=_Loader)  # noqa: S506  # it is a safe one
    except yaml.YAMLError:
        fields = yaml.load(text, Loader=_Loader)  # noqa: S506  # it is a safe one
    return fields if isinstance(fields, dict) else {}


def _lines_of_keys(text: str) -> Iterator[str]:
    is_wanted = False
    for line in text.splitlines(keepends=True):
        is_wanted = bool(_BEGIN.match(line)) or (is_wanted and bool(_CONTINUED.match(line)))
        if is_wanted:
            yield line


class _Loader(yaml.CSafeLoader):
    """Tags of other tools mean nothing here."""


def _without_meaning(_: yaml.CSafeLoader, __: str, ___: yaml.Node) -> None:
    return None


_Loader.add_multi_constructor("!", _without_meaning)
