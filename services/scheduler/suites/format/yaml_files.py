"""The YAML files of one suite, each read once, with what is wrong in them and with what they include."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from services.scheduler.suites.format.suite_document import (
    MAX_DOCUMENT_BYTES,
    KeyPath,
    SuiteProblem,
    path_problem,
)
from services.scheduler.suites.format.yaml_document import Node, NotYaml, read_yaml

MAX_LAYERS = 20

ReadFile = Callable[[str], bytes]
"""Gives a file of the suite's folder by its path in it; raises OSError."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A mapping of one file that declares a task, or a part of it; `path` leads to it in its file."""

    file: str
    node: Node
    path: KeyPath = ()


@dataclass(frozen=True, slots=True)
class Place:
    file: str
    path: KeyPath
    line: int


@dataclass(frozen=True, slots=True)
class Declaration:
    """A mapping with what it includes: the layers it is merged of, the first is the lowest.

    Not whole, where something it includes cannot be had, which is reported then.
    """

    layers: tuple[Layer, ...]
    is_whole: bool = True

    def fields(self, *, is_deep: bool) -> dict[str, object]:
        """Merged: deep merges mappings key by key, else a key of a higher layer replaces the whole value."""
        merged: dict[str, object] = {}
        for layer in self.layers:
            fields = _mapping(layer.node)
            merged = _merged(merged, fields) if is_deep else {**merged, **fields}
        merged.pop("include", None)
        return merged

    def has(self, key: str) -> bool:
        return any(layer.node.below(key) is not None for layer in self.layers)

    def text(self, key: str) -> str:
        """The value of a key on its own; "" where it is no text."""
        nodes = [node for layer in self.layers if (node := layer.node.below(key)) is not None]
        return _text(nodes[-1]) if nodes else ""

    def place(self, path: KeyPath) -> Place:
        """Where the value is written; of what is not there, where the mapping begins that should have it."""
        for length in range(len(path), 0, -1):
            for layer in reversed(self.layers):
                node = _follow(layer.node, path[:length])
                if node is not None:
                    return Place(layer.file, (*layer.path, *path), node.line)
        top = self.layers[-1]
        return Place(top.file, (*top.path, *path), top.node.line)


@dataclass
class SuiteFiles:
    """`asked` holds every path that was looked for, also in vain: a change there may change the suite.

    `sent_files` are all the files there are, where a user sent them; None: whatever lies in the folder.
    """

    read: ReadFile
    root: str
    sent_files: frozenset[str] | None = None
    problems: list[SuiteProblem] = field(default_factory=list)
    asked: dict[str, Node | None] = field(default_factory=dict)
    _absent: dict[str, str] = field(default_factory=dict)
    _unusable: set[tuple[str, KeyPath]] = field(default_factory=set)
    _lost_includes: int = 0

    def node(self, path: str) -> Node | None:
        """None where there is no file, or no YAML in it."""
        if path not in self.asked:
            self.asked[path] = self._read(path)
        return self.asked[path]

    @property
    def root_place(self) -> Place:
        return Place(self.root, (), 1)

    def why_unusable(self, path: str) -> str:
        """As whoever names the file has to be told; "" where it is fine, or where it was told of the file."""
        node = self.node(path)
        # Of the root its author knows another name.
        name = self._name(path) or "the document"
        if path in self._absent:
            return f"{name} cannot be read ({self._absent[path]})"
        is_mapping = node is None or isinstance(node.content, dict)
        return "" if is_mapping else f"{name} holds no keys and values"

    def report(self, place: Place, problem: str) -> None:
        """Nothing where the value there, or one around it, is a placeholder for what was reported before."""
        around = [(place.file, place.path[:length]) for length in range(1, len(place.path) + 1)]
        if self._unusable.isdisjoint(around):
            key = ".".join(str(part) for part in place.path)
            self.problems.append(SuiteProblem(problem, self._name(place.file), place.line, key))

    def declaration(self, layer: Layer) -> Declaration:
        """A layer with all that it includes."""
        before = self._lost_includes
        layers = (*self._included(layer, (layer.file,) if not layer.path else ()), layer)
        return Declaration(layers, is_whole=self._lost_includes == before)

    def _read(self, path: str) -> Node | None:
        try:
            content = self.read(path)
        except OSError as error:
            self._absent[path] = error.strerror or str(error)
            return None
        if len(content) > MAX_DOCUMENT_BYTES:
            self.report(Place(path, (), 0), f"the file has more than {MAX_DOCUMENT_BYTES} bytes")
            return None
        try:
            document = read_yaml(content)
        except NotYaml as error:
            self.report(Place(path, (), error.line), error.problem)
            return None
        for fault in document.faults:
            self.report(Place(path, fault.path, fault.line), fault.problem)
            self._unusable.add((path, fault.path))
        return document.root

    def _included(self, layer: Layer, chain: tuple[str, ...]) -> tuple[Layer, ...]:
        """What a layer builds on; `chain` is the way of files that led to it."""
        layers: list[Layer] = []
        for path, name in _included_names(layer.node):
            file = str(PurePosixPath(layer.file).parent / name)
            problem = self._include_problem(file, chain, len(layers))
            node = None if problem else self.node(file)
            if node is not None and isinstance(node.content, dict):
                below = Layer(file, node)
                layers += [*self._included(below, (*chain, file)), below]
                continue
            self._lost_includes += 1
            problem = problem or self.why_unusable(file)
            if problem:
                self.report(Declaration((layer,)).place(path), problem)
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


def _included_names(node: Node) -> list[tuple[KeyPath, str]]:
    include = node.below("include")
    if include is None:
        return []
    if isinstance(include.content, tuple):
        return [(("include", place), _text(name)) for place, name in enumerate(include.content)]
    return [(("include",), _text(include))]


def _text(node: Node) -> str:
    """What is no text is no path either, and will be told so."""
    return node.content if isinstance(node.content, str) else ""


def _mapping(node: Node) -> dict[str, object]:
    value = node.value()
    return value if isinstance(value, dict) else {}


def _merged(low: dict[str, object], high: dict[str, object]) -> dict[str, object]:
    merged = dict(low)
    for key, value in high.items():
        below = merged.get(key)
        both = isinstance(below, dict) and isinstance(value, dict)
        merged[key] = _merged(below, value) if both else value  # type: ignore[arg-type]  # both are, then
    return merged


def _follow(node: Node, path: KeyPath) -> Node | None:
    found: Node | None = node
    for part in path:
        found = found.below(part) if found is not None else None
    return found
