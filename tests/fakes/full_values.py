"""Values with something in every field, made by the types of the fields: nothing can be lost unseen."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from enum import Enum
from itertools import count
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def full_value(value_type: type[T], alternative: int = 0) -> T:
    """No field has its default, no two numbers or texts are the same; `alternative` chooses among types."""
    made: T = _Maker(alternative).value(value_type)
    return made


def empty_value(value_type: type[T]) -> T:
    """Every field that may be empty is; of a union the first type."""
    hints = get_type_hints(value_type)
    return value_type(**{each.name: _empty(hints[each.name]) for each in fields(value_type)})  # type: ignore[arg-type]  # a dataclass


def _empty(hint: Any) -> Any:
    if NoneType in get_args(hint):
        return None
    hint = getattr(hint, "__supertype__", hint)
    origin = get_origin(hint) or hint
    if origin in {Union, UnionType}:
        return _empty(get_args(hint)[0])
    if issubclass(origin, Enum):
        return next(iter(origin))
    if issubclass(origin, Mapping):
        return {}
    if origin is Sequence:
        return ()
    if origin is datetime:
        return datetime.fromtimestamp(0, UTC)
    return empty_value(origin) if hasattr(origin, "__dataclass_fields__") else origin()


class _Maker:
    def __init__(self, alternative: int) -> None:
        self._alternative = alternative
        self._numbers = count(2)

    def value(self, value_type: Any) -> Any:
        hints = get_type_hints(value_type)
        return value_type(**{each.name: self._make(hints[each.name]) for each in fields(value_type)})

    def _make(self, hint: Any) -> Any:
        hint = getattr(hint, "__supertype__", hint)
        origin, arguments = get_origin(hint), get_args(hint)
        if origin in {Union, UnionType}:
            others = [each for each in arguments if each is not NoneType]
            return self._make(others[min(self._alternative, len(others) - 1)])
        if origin in {tuple, list, frozenset}:
            return origin(self._make(arguments[0]) for _ in range(2))
        if origin is Sequence:
            return tuple(self._make(arguments[0]) for _ in range(2))
        if origin is not None and issubclass(origin, Mapping):
            return {self._make(arguments[0]): self._make(arguments[1]) for _ in range(2)}
        return self.value(hint) if hasattr(hint, "__dataclass_fields__") else self._plain(hint)

    def _plain(self, hint: Any) -> Any:
        number = next(self._numbers)
        if issubclass(hint, Enum):
            return list(hint)[number % len(hint)]
        made = {
            bool: True,
            int: number,
            float: number + 0.5,
            str: f"text {number}",
            bytes: bytes([number]),
            object: f"text {number}",
            datetime: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number),
            timedelta: timedelta(seconds=number),
        }
        return made[hint]
