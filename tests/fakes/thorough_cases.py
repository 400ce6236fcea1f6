"""Pairs of parameters of which `make test` tries each value once, and `make test-thorough` the rest."""

from collections.abc import Collection, Iterator, Sequence

import pytest
from _pytest.mark import ParameterSet


def each_value_once(longer: Collection[str], shorter: Sequence[str]) -> Iterator[ParameterSet]:
    """All pairs; those are thorough whose two values occur in others."""
    for number, first in enumerate(longer):
        for place, second in enumerate(shorter):
            marks = () if number % len(shorter) == place else (pytest.mark.thorough,)
            yield pytest.param(first, second, marks=marks)
