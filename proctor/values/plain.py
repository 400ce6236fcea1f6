"""Values as plain data for JSON, and back by the types of their fields; texts of lines, tables and totals."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, TypeGuard, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Json = dict[str, Any]

# Counts are int32 in the contract: protobuf refuses larger ones without naming the field.
INT32_MAX = 2**31 - 1
# Lists and objects within each other. How deep Python itself follows them differs between its versions.
MAX_LEVELS = 100
# Lists are counted to this: a count reads every row that matches.
MAX_COUNTED = 1000

# Next line, line separator and paragraph separator: within JSON they occur only in strings.
_ESCAPES = {text.encode(): f"\\u{ord(text):04x}".encode() for text in "\x85\u2028\u2029"}
# A spreadsheet runs a cell as a formula if it begins with one of these (OWASP, "CSV injection").
_FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # full-width ones too
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")


def to_plain(value: Any) -> dict[str, Any]:
    """A dataclass as dictionaries, lists, words and numbers."""
    return asdict(value)


def from_plain(value_type: type[T], data: Mapping[str, Any]) -> T:
    """The dataclass again. A missing field gets its default; a field that the type lacks is ignored."""
    readers = _readers(value_type)  # type: ignore[arg-type]  # a type can be hashed
    return value_type(
        **{
            name: item if (read := readers[name]) is None else read(item)
            for name, item in data.items()
            if name in readers
        }
    )


# None leaves an item as it is.
_Reader = Callable[[Any], Any] | None


@cache
def _readers(value_type: Any) -> dict[str, _Reader]:
    """Readers of the fields. They are made once: lists of runs read thousands of fields."""
    hints = get_type_hints(value_type)
    return {each.name: _reader(hints[each.name]) for each in fields(value_type) if each.init}


def _reader(hint: Any) -> _Reader:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        [first, *_] = [_reader(each) for each in arguments if each is not NoneType]
        return first and (lambda item: None if item is None else first(item))
    if origin is not None and issubclass(origin, Mapping):
        value = _reader(arguments[1])
        return (lambda item: {key: value(each) for key, each in item.items()}) if value else dict
    if origin in {tuple, list, frozenset}:
        element = _reader(arguments[0])
        return (lambda item: origin(map(element, item))) if element else origin
    # JSON may hold a whole number.
    if hint is float or (isinstance(hint, type) and issubclass(hint, Enum)):
        return hint
    return partial(from_plain, hint) if is_dataclass(hint) and isinstance(hint, type) else None


def is_shallow(value: object) -> bool:
    """Counts without recursion."""
    level = [value] if _holds_values(value) else []
    for _ in range(MAX_LEVELS):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [held for values in inner for held in values if _holds_values(held)]
        if not level:
            return True
    return False


def _holds_values(value: object) -> TypeGuard[list[object] | dict[str, object]]:
    return isinstance(value, list | dict)


def with_line_feeds_only(lines: bytes) -> bytes:
    """JSON lines in which no break but the line feed is left, for readers such as Python's `splitlines`."""
    if lines.isascii():  # Two hundred times as fast as three searches that find nothing.
        return lines
    for break_bytes, escape in _ESCAPES.items():
        lines = lines.replace(break_bytes, escape)
    return lines


def csv_safe(text: str) -> str:
    """The text, with an apostrophe before a formula: a spreadsheet then shows the text and does not run it.

    Numbers stay numbers.
    """
    is_formula = text.startswith(_FORMULA_BEGINS) and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def is_counted(total: int) -> bool:
    """Whether the total of a list is the number itself, and not one above the bound, where there are more."""
    return total <= MAX_COUNTED


def total_text(total: int) -> str:
    """The number, or `more than 1,000`."""
    return f"{total:,}" if is_counted(total) else f"more than {MAX_COUNTED:,}"
