"""JSON of logs, read with care: any text that can be kept, and numbers that are numbers."""

import json
import math
from collections.abc import Mapping, Sequence

import orjson

# More of a line is no answer, and more of a document does not fit into memory once it is read.
MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_DOCUMENT_BYTES = 256 * 1024 * 1024
# What an order counts has 32 bits.
ORDERED_BELOW = 2**31
_ESCAPE = b"\\u"
_NUL = b"\\u0000"


class LogProblem(Exception):
    """The log is refused: why, as a clause that ends with a full stop."""


def parsed(content: bytes, where: str) -> object:
    """A JSON text, in which NaN is null and what is no character a question mark. Raises `LogProblem`."""
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        value = _parsed_slowly(content, where)
        return _kept(value, where) if _ESCAPE in content else value
    return _kept(value, where) if _NUL in content else value


def _parsed_slowly(content: bytes, where: str) -> object:
    """Takes what Python's own writer writes: NaN, infinities, and halves of characters."""
    try:
        value: object = json.loads(content, parse_constant=lambda _: None)
    except RecursionError as error:
        raise LogProblem(f"{where} is nested too deeply.") from error
    except ValueError as error:
        raise LogProblem(f"{where} is not JSON ({error}).") from error
    return value


def _kept(value: object, where: str) -> object:
    try:
        return _storable(value)
    except RecursionError as error:
        raise LogProblem(f"{where} is nested too deeply.") from error


def _storable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")
    if isinstance(value, dict):
        return {_storable(name): _storable(each) for name, each in value.items()}
    return [_storable(each) for each in value] if isinstance(value, list) else value


def as_object(value: object) -> Mapping[str, object]:
    """Empty for what is no object."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> Sequence[object]:
    """Empty for what is no list."""
    return value if isinstance(value, list) else ()


def as_text(value: object) -> str:
    """ "" for what is no text."""
    return value if isinstance(value, str) else ""


def as_number(value: object) -> float | None:
    """None for what is no finite number; true is 1, and a text that is a number counts as one."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if not isinstance(value, bool | int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def as_count(value: object, *, below: int = 2**53) -> int:
    """0 for what is no number above it, or is as large as `below`."""
    number = as_number(value)
    return int(number) if number is not None and 0 < number < below else 0


def member(value: object, *names: str) -> object:
    """What lies at a path of names; None where it ends before."""
    for name in names:
        value = as_object(value).get(name)
    return value
