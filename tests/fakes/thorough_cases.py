"""Parameters of which `make test` tries some, and `make test-thorough` the rest."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def each_value_once(longer: Collection[str], shorter: Sequence[str], *, step: int = 1) -> list[ParameterSet]:
    """All pairs; those are thorough whose two values occur in others.

    `step`: of longer values that are sorted by kind, those between are thorough too.
    """
    return [
        _case(first, second, is_thorough=number % step > 0 or number // step % len(shorter) != place)
        for number, first in enumerate(longer)
        for place, second in enumerate(shorter)
    ]


def every_third(values: Collection[str]) -> list[ParameterSet]:
    """Of values that are sorted by kind; the others are thorough."""
    return [_case(value, is_thorough=number % 3 > 0) for number, value in enumerate(values)]


def first_cases(
    count: int,
    names: str | tuple[str, ...],
    values: Iterable[Any],
    ids: Iterable[str] | Callable[[Any], str] | None = None,
) -> pytest.MarkDecorator:
    """`pytest.mark.parametrize` over values of one kind: those after the first `count` are thorough."""
    is_single = isinstance(names, str) and "," not in names
    cases = [
        value if isinstance(value, ParameterSet) else pytest.param(*((value,) if is_single else value))
        for value in values
    ]
    rest = [case._replace(marks=(*case.marks, pytest.mark.thorough)) for case in cases[count:]]
    return pytest.mark.parametrize(names, [*cases[:count], *rest], ids=ids)


def _case(*values: Any, is_thorough: bool) -> ParameterSet:
    return pytest.param(*values, marks=[pytest.mark.thorough] if is_thorough else [])
