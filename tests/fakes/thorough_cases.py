"""Parameters of which `make test` tries some, and `make test-thorough` the rest."""

from collections.abc import Collection, Sequence

import pytest
from _pytest.mark import ParameterSet


def each_value_once(longer: Collection[str], shorter: Sequence[str]) -> list[ParameterSet]:
    """All pairs; those are thorough whose two values occur in others."""
    return [
        _case(first, second, is_thorough=number % len(shorter) != place)
        for number, first in enumerate(longer)
        for place, second in enumerate(shorter)
    ]


def every_third(values: Collection[str]) -> list[ParameterSet]:
    """Of values that are sorted by kind; the others are thorough."""
    return [_case(value, is_thorough=number % 3 > 0) for number, value in enumerate(values)]


def _case(*values: str, is_thorough: bool) -> ParameterSet:
    return pytest.param(*values, marks=[pytest.mark.thorough] if is_thorough else [])
