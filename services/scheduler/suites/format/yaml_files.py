"""The YAML files of one suite: each is read once, with its includes and its faults."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from proctor.code_files import code_files
from proctor.task_names import TaskNames, path_beside, read_task_names
from proctor.values.sample import MAX_SUITE_BYTES
from services.scheduler.suites.format.suite_document import KeyPath, SuiteFault, path_problem
from services.scheduler.suites.format.yaml_document import InvalidYaml, Node, read_yaml

# Tasks of lm-evaluation-harness build on a few files; circles are reported apart.
MAX_LAYERS = 20

# Reads a file of the suite's folder by its relative path; raises OSError.
ReadFile = Callable[[str], bytes]
# Lists the paths of all files of the suite's folder.
ListFiles = Callable[[], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Layer:
    """A mapping in one file that declares a task or a part of it; `path` is its path in the file."""

    file: str
    node: Node
    path: KeyPath = ()


@dataclass(frozen=True, slots=True)
class Location:
    file: str
    path: KeyPath
    line: int


@dataclass(frozen=True, slots=True)
class Declaration:
    """A mapping merged from layers, its includes first.

    It is incomplete if an include cannot be read, which is then reported.
    """

    layers: tuple[Layer, ...]
    is_complete: bool = True

    def fields(self, *, is_deep: bool) -> dict[str, object]:
        """Merges the layers: key by key at all depths if deep, else top-level values replace each other."""
        merged: dict[str, object] = {}
        for layer in self.layers:
            fields = _mapping(layer.node)
            merged = _merged(merged, fields) if is_deep else {**merged, **fields}
        merged.pop("include", None)
        return merged

    def has(self, key: str) -> bool:
        return any(layer.node.child(key) is not None for layer in self.layers)

    def text(self, key: str) -> str:
        """The unmerged text of a key; "" if it is not text."""
        nodes = [node for layer in self.layers if (node := layer.node.child(key)) is not None]
        return _text(nodes[-1]) if nodes else ""

    def location(self, path: KeyPath) -> Location:
        """Location of a value; of a missing one, that of the mapping that should have it."""
        for length in range(len(path), 0, -1):
            for layer in reversed(self.layers):
                node = _follow(layer.node, path[:length])
                if node is not None:
                    return Location(layer.file, (*layer.path, *path), node.line)
        top = self.layers[-1]
        return Location(top.file, (*top.path, *path), top.node.line)


@dataclass
class SuiteFiles:
    """`nodes` and `code` have every path that was looked up, also missing ones: a change there may change the
    suite. `code` has the files of Python code, None where one cannot be read.

    `sent_files` are the only files available if a user sent them; None means all files of the folder.
    """

    read: ReadFile
    root: str
    list_files: ListFiles
    sent_files: frozenset[str] | None = None
    faults: list[SuiteFault] = field(default_factory=list)
    nodes: dict[str, Node | None] = field(default_factory=dict)
    code: dict[str, bytes | None] = field(default_factory=dict)
    _unreadable: dict[str, str] = field(default_factory=dict)
    _invalid: set[tuple[str, KeyPath]] = field(default_factory=set)
    _duplicates: list[tuple[Location, str]] = field(default_factory=list)
    _code_files: dict[str, Mapping[str, bytes]] = field(default_factory=dict)
    _failed_includes: int = 0

    def node(self, path: str) -> Node | None:
        """Returns None if the file is missing or invalid."""
        if path not in self.nodes:
            self.nodes[path] = self._read(path)
        return self.nodes[path]

    def code_files(self, path: str) -> Mapping[str, bytes]:
        """A Python file and what it needs, by their paths; nothing where it cannot be read."""
        if path not in self._code_files:
            try:
                self._code_files[path] = code_files(path, self._read_code)
            except OSError:
                self._code_files[path] = {}
        return self._code_files[path]

    @cached_property
    def task_names(self) -> TaskNames:
        """What the files declare for lm-evaluation-harness. Reads all of them."""
        return read_task_names(self.list_files(), self.read)

    @property
    def root_location(self) -> Location:
        return Location(self.root, (), 1)

    def unusable_reason(self, path: str) -> str:
        """Returns the problem for the place that names the file; "" if usable or reported in the file."""
        node = self.node(path)
        # The author knows the root by another name.
        name = self._name(path) or "the document"
        if path in self._unreadable:
            return f"{name} cannot be read ({self._unreadable[path]})"
        is_mapping = node is None or isinstance(node.content, dict)
        return "" if is_mapping else f"{name} holds no keys and values"

    def report(self, location: Location, problem: str) -> None:
        """Reports a fault, unless the value or one around it is a placeholder after an earlier fault."""
        around = [(location.file, location.path[:length]) for length in range(1, len(location.path) + 1)]
        if self._invalid.isdisjoint(around):
            key = ".".join(str(part) for part in location.path)
            self.faults.append(SuiteFault(problem, self._name(location.file), location.line, key))

    def report_duplicates(self) -> None:
        """Reports keys that are there twice, instead of faults of their values."""
        for location, problem in self._duplicates:
            at = self._name(location.file), ".".join(str(part) for part in location.path)
            self.faults = [one for one in self.faults if at not in _fields_around(one)]
            self.report(location, problem)

    def declaration(self, layer: Layer) -> Declaration:
        """Returns a layer with all its includes."""
        before = self._failed_includes
        layers = (*self._included(layer, (layer.file,) if not layer.path else ()), layer)
        return Declaration(layers, is_complete=self._failed_includes == before)

    def _read_code(self, path: str) -> bytes:
        if path_problem(path):
            raise FileNotFoundError(path)
        if path not in self.code:
            try:
                self.code[path] = self.read(path)
            except OSError:
                self.code[path] = None
        content = self.code[path]
        if content is None:
            raise FileNotFoundError(path)
        return content

    def _read(self, path: str) -> Node | None:
        try:
            content = self.read(path)
        except OSError as error:
            self._unreadable[path] = error.strerror or str(error)
            return None
        if len(content) > MAX_SUITE_BYTES:
            self.report(Location(path, (), 0), f"the file has more than {MAX_SUITE_BYTES} bytes")
            return None
        try:
            document = read_yaml(content)
        except InvalidYaml as error:
            self.report(Location(path, (), error.line), error.problem)
            return None
        for found in document.faults:
            if found.is_duplicate:
                self._duplicates.append((Location(path, found.path, found.line), found.problem))
                continue
            self.report(Location(path, found.path, found.line), found.problem)
            self._invalid.add((path, found.path))
        return document.root

    def _included(self, layer: Layer, chain: tuple[str, ...]) -> tuple[Layer, ...]:
        """Layers that a layer includes; `chain` are the files that led to it."""
        layers: list[Layer] = []
        for path, name in _included_names(layer.node):
            file = path_beside(layer.file, name)
            problem = self._include_problem(file, chain, len(layers))
            node = None if problem else self.node(file)
            if node is not None and isinstance(node.content, dict):
                below = Layer(file, node)
                layers += [*self._included(below, (*chain, file)), below]
                continue
            self._failed_includes += 1
            problem = problem or self.unusable_reason(file)
            if problem:
                self.report(Declaration((layer,)).location(path), problem)
        return tuple(layers[:MAX_LAYERS])

    def _include_problem(self, file: str, chain: tuple[str, ...], count: int) -> str:
        if path_problem(file):
            return path_problem(file)
        if file in chain:
            return f"goes round in a circle: {' → '.join([*chain[chain.index(file) :], file])}"
        if count >= MAX_LAYERS or len(chain) >= MAX_LAYERS:
            return f"more than {MAX_LAYERS} files build on each other"
        return ""

    def _name(self, file: str) -> str:
        return "" if file == self.root else file


def _fields_around(fault: SuiteFault) -> list[tuple[str, str]]:
    parts = fault.field.split(".")
    return [(fault.file, ".".join(parts[:length])) for length in range(1, len(parts) + 1)]


def _included_names(node: Node) -> list[tuple[KeyPath, str]]:
    include = node.child("include")
    if include is None:
        return []
    if isinstance(include.content, tuple):
        return [(("include", number), _text(name)) for number, name in enumerate(include.content)]
    return [(("include",), _text(include))]


def _text(node: Node) -> str:
    """Returns "" for other values; an empty path is reported later."""
    return node.content if isinstance(node.content, str) else ""


def _mapping(node: Node) -> dict[str, object]:
    value = node.value()
    return value if isinstance(value, dict) else {}


def _merged(low: dict[str, object], high: dict[str, object]) -> dict[str, object]:
    merged = dict(low)
    for key, value in high.items():
        old = merged.get(key)
        is_mergeable = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = _merged(old, value) if is_mergeable else value  # type: ignore[arg-type]  # both are dicts then
    return merged


def _follow(node: Node, path: KeyPath) -> Node | None:
    found: Node | None = node
    for part in path:
        found = found.child(part) if found is not None else None
    return found
