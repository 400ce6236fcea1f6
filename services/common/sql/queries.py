"""The statements of `queries.sql` files by name, and the names of their parameters."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

_NO_PARTS: Final[Mapping[str, str]] = MappingProxyType({})
_NAME_LINE = re.compile(r"^-- name:\s*(?P<name>\w+)\b.*$", re.MULTILINE)
# Texts, quoted names and comments come first: what looks like a parameter in them is none.
_TOKEN = re.compile(
    r"""
    [eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "[^"]*"
    | \$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$
    | --[^\n]* | /\*.*?\*/
    | (?P<number>\$\d+) | \{(?P<part>\w+)\}
    # Behind a word or a bracket a colon is that of a slice, and behind a colon that of a cast.
    | (?<![\w)\]:]):(?P<name>[A-Za-z_]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Query:
    """`statement` has numbers for parameters; `parameters` are their names in the order of the numbers."""

    name: str
    statement: str
    parameters: tuple[str, ...]

    def arguments(self, values: Mapping[str, object]) -> list[object]:
        """Values in the order of the parameters. Raises TypeError unless each parameter has one."""
        try:
            arguments = [values[name] for name in self.parameters]
        except KeyError:
            raise self._wrong(values) from None
        if len(arguments) != len(values):
            raise self._wrong(values)
        return arguments

    def call(self, values: Mapping[str, object]) -> list[Any]:
        """The statement and its arguments, as asyncpg takes them."""
        return [self.statement, *self.arguments(values)]

    def _wrong(self, values: Mapping[str, object]) -> TypeError:
        faults = [f"{name} is missing" for name in self.parameters if name not in values]
        faults += [f"{name} is not one of its parameters" for name in values if name not in self.parameters]
        return TypeError(f"query {self.name}({', '.join(self.parameters)}): {', '.join(faults)}")


def parse_query(name: str, text: str, parts: Mapping[str, str] = _NO_PARTS) -> Query:
    """Numbers the parameters: `:run_id` becomes `$1`, wherever it stands; `{line}` becomes that part.

    Raises ValueError for a number, and for a part that is not given.
    """
    numbers: dict[str, int] = {}

    def numbered(token: re.Match[str]) -> str:
        if token["number"]:
            raise ValueError(f"query {name}: {token['number']} has no name; write :name instead")
        if token["part"]:
            if token["part"] not in parts:
                raise ValueError(f"query {name}: no part has the name {token['part']}")
            return parts[token["part"]]
        if token["name"] is None:
            return token[0]
        return f"${numbers.setdefault(token['name'], len(numbers) + 1)}"

    statement = _TOKEN.sub(numbered, text)
    return Query(name, statement, tuple(numbers))


def load_queries(*paths: Path, parts: Mapping[str, str] = _NO_PARTS) -> Mapping[str, Query]:
    """The queries of some files by the name in their `-- name: read_run: Purpose` line.

    `parts` is SQL that code makes from a list, by the names that stand in braces in the files.

    Raises ValueError for a name that occurs twice.
    """
    queries: dict[str, Query] = {}
    for path in paths:
        text = path.read_text(encoding="utf-8")
        marks = list(_NAME_LINE.finditer(text))
        ends = [mark.start() for mark in marks[1:]] + [len(text)]
        for mark, end in zip(marks, ends, strict=True):
            name = mark["name"]
            if name in queries:
                raise ValueError(f"{path}: another query is named {name} as well")
            queries[name] = parse_query(name, text[mark.end() : end].strip(), parts)
    return queries
