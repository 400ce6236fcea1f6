"""Reads YAML into values that know their lines. Built from events: depth and alias growth are bounded.

Why not PyYAML's own composer: docs/decisions/0020-own-yaml-composer.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import yaml
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from services.scheduler.suites.format.suite_document import KeyPath

# Recursion of Python ends at a thousand frames; values of suites are a few levels deep.
MAX_DEPTH = 50
# Python reads long numbers in square time.
MAX_NUMBER_CHARACTERS = 100
# Aliases count as often as they are used.
MAX_NODES = 200_000

Scalar = str | int | float | bool | None

_TAG = "tag:yaml.org,2002:"
_COLLECTION_TAGS = {None, "!", f"{_TAG}map", f"{_TAG}seq"}
_MERGE_KEY = "<<"
_RESOLVER = Resolver()
_CONSTRUCTOR = SafeConstructor()


class FunctionName(str):
    """A function of Python code, as `!function utils.process_docs` names it."""

    __slots__ = ()


class InvalidYaml(Exception):
    """A text is not valid YAML, or would grow too large."""

    def __init__(self, problem: str, line: int = 0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


@dataclass(frozen=True, slots=True)
class Node:
    """A value. `line` counts from 1 and is that of its key, if any. `size` counts all nested values."""

    line: int
    content: "Scalar | tuple[Node, ...] | dict[str, Node]"
    size: int = 1

    def child(self, part: str | int) -> "Node | None":
        if isinstance(self.content, dict) and isinstance(part, str):
            return self.content.get(part)
        if isinstance(self.content, tuple) and isinstance(part, int):
            return self.content[part] if part < len(self.content) else None
        return None

    def value(self) -> object:
        """The document as plain dictionaries, lists and scalars."""
        if isinstance(self.content, dict):
            return {key: node.value() for key, node in self.content.items()}
        if isinstance(self.content, tuple):
            return [node.value() for node in self.content]
        return self.content


@dataclass(frozen=True, slots=True)
class YamlFault:
    """`is_duplicate`: a key is there twice, of which the last one counts in other readers."""

    path: KeyPath
    line: int
    problem: str
    is_duplicate: bool = False


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """`faults` are parts that YAML allows but we do not; the values there are placeholders."""

    root: Node
    faults: tuple[YamlFault, ...]


def read_yaml(content: bytes) -> YamlDocument:
    """Raises `InvalidYaml`."""
    try:
        composer = _Composer(content.decode("utf-8-sig"))
        return YamlDocument(composer.document(), tuple(composer.faults))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidYaml("not valid UTF-8", line) from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise InvalidYaml(f"not valid YAML: {error.problem}", line) from error
    except yaml.YAMLError as error:
        raise InvalidYaml(f"not valid YAML: {' '.join(str(error).split())}") from error


class _Composer:
    def __init__(self, text: str) -> None:
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.CSafeLoader)
        self._anchors: dict[str, Node] = {}
        self._nodes_left = MAX_NODES
        self.faults: list[YamlFault] = []

    def document(self) -> Node:
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise InvalidYaml("the file is empty")
        root = self._node(next(self._events), ())
        next(self._events)
        following = next(self._events)
        if not isinstance(following, yaml.StreamEndEvent):
            raise InvalidYaml("one document per file", _line_of(following))
        return root

    def _node(self, event: yaml.Event, path: KeyPath, key_line: int | None = None) -> Node:
        line = key_line or _line_of(event)
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(event, line)
        self._count(1, line)
        if len(path) > MAX_DEPTH:
            raise InvalidYaml(f"nested deeper than {MAX_DEPTH} levels", line)
        if isinstance(event, yaml.ScalarEvent):
            node = Node(line, self._scalar(event, path, line))
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(event, path, line)
        elif isinstance(event, yaml.MappingStartEvent):
            node = self._mapping(event, path, line)
        else:
            raise TypeError(f"no value begins with {event}")
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _aliased(self, event: yaml.AliasEvent, line: int) -> Node:
        if event.anchor not in self._anchors:
            raise InvalidYaml(f"the alias *{event.anchor} names nothing that comes before it", line)
        node = self._anchors[event.anchor]
        self._count(node.size, line)
        return Node(line, node.content, node.size)

    def _count(self, nodes: int, line: int) -> None:
        self._nodes_left -= nodes
        if self._nodes_left < 0:
            raise InvalidYaml(
                f"more than {MAX_NODES} values, aliases counted as often as they are used", line
            )

    def _sequence(self, event: yaml.CollectionStartEvent, path: KeyPath, line: int) -> Node:
        self._check_tag(event, path, line)
        items: list[Node] = []
        while not isinstance(following := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(following, (*path, len(items))))
        return Node(line, tuple(items), 1 + sum(item.size for item in items))

    def _mapping(self, event: yaml.CollectionStartEvent, path: KeyPath, line: int) -> Node:
        self._check_tag(event, path, line)
        own: dict[str, Node] = {}
        merged: dict[str, Node] = {}
        while not isinstance(following := next(self._events), yaml.MappingEndEvent):
            key, key_line = _key(following), _line_of(following)
            value = self._node(next(self._events), (*path, key), key_line)
            if key == _MERGE_KEY:
                merged = {**self._merged(value), **merged}
                continue
            if key in own:
                fault = YamlFault((*path, key), key_line, "this key is there twice", is_duplicate=True)
                self.faults.append(fault)
            own[key] = value
        entries = {**merged, **own}
        return Node(line, entries, 1 + sum(node.size for node in entries.values()))

    def _merged(self, value: Node) -> dict[str, Node]:
        """Entries of a merge key; of several mappings the earlier one wins."""
        several = value.content if isinstance(value.content, tuple) else (value,)
        entries: dict[str, Node] = {}
        for mapping in several:
            if not isinstance(mapping.content, dict):
                raise InvalidYaml("a merge key (<<) takes a mapping or a list of mappings", mapping.line)
            entries = {**mapping.content, **entries}
        return entries

    def _check_tag(self, event: yaml.CollectionStartEvent, path: KeyPath, line: int) -> None:
        if event.tag not in _COLLECTION_TAGS:
            self.faults.append(YamlFault(path, line, f"the tag {event.tag} means nothing in a suite"))

    def _scalar(self, event: yaml.ScalarEvent, path: KeyPath, line: int) -> Scalar:
        tag = event.tag if event.tag not in {None, "!"} else f"{_TAG}str"
        if event.implicit[0] and event.tag is None:
            tag = str(_RESOLVER.resolve(yaml.ScalarNode, event.value, (True, False)))  # type: ignore[no-untyped-call]  # the stubs leave it out
        try:
            value, problem = _scalar_of(tag, event.value)
        except (ValueError, LookupError):
            value, problem = event.value, f"{event.value[:40]!r} is not of the type {tag.removeprefix(_TAG)}"
        if problem:
            self.faults.append(YamlFault(path, line, problem))
        return value


def _key(event: yaml.Event) -> str:
    """Keys are always text, also those that look like numbers or booleans."""
    if not isinstance(event, yaml.ScalarEvent):
        raise InvalidYaml("a key must be a plain text", _line_of(event))
    return str(event.value)


def _line_of(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _scalar_of(tag: str, text: str) -> tuple[Scalar, str]:
    """Returns the value and its problem, "" for none."""
    match tag.removeprefix(_TAG):
        case "null":
            return None, ""
        case "bool":
            return SafeConstructor.bool_values[text.lower()], ""
        case "int":
            return int(_CONSTRUCTOR.construct_yaml_int(_short(tag, text))), ""
        case "float":
            number = float(_CONSTRUCTOR.construct_yaml_float(_short(tag, text)))
            return number, "" if math.isfinite(number) else f"{text} is not a finite number"
        case "!function":
            return FunctionName(text), ""
        case "str" | "timestamp" | "value" | "merge":
            return text, ""
        case _:
            return text, f"the tag {tag} means nothing in a suite"


def _short(tag: str, text: str) -> yaml.ScalarNode:
    """Refuses long numbers: converting a million digits takes hours."""
    if len(text) > MAX_NUMBER_CHARACTERS:
        raise ValueError
    return yaml.ScalarNode(tag, text)
