"""Priorities order by what goes first, whatever their words sort like."""

import json

import pytest

from proctor.values.priority import Priority, default_priority


def test_the_highest_priority_sorts_first() -> None:
    assert sorted([Priority.LOW, Priority.HIGH, Priority.NORMAL]) == list(Priority)
    assert min(Priority) is Priority.HIGH
    assert Priority.HIGH < Priority.LOW
    assert Priority.NORMAL >= Priority.NORMAL


def test_a_priority_is_its_word_and_has_the_number_of_the_contract() -> None:
    assert Priority("low") is Priority.LOW
    assert Priority.of_number(2) is Priority.NORMAL
    assert f"work.{Priority.HIGH}" == "work.high"
    assert json.dumps(Priority.LOW) == '"low"'


@pytest.mark.parametrize("number", [0, 4])
def test_a_number_without_a_priority_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=f"{number} is not a value of Priority"):
        Priority.of_number(number)


def test_a_priority_is_limited_to_the_highest_that_is_allowed() -> None:
    assert Priority.HIGH.limited_to(Priority.NORMAL) is Priority.NORMAL
    assert Priority.LOW.limited_to(Priority.NORMAL) is Priority.LOW


def test_data_sets_run_in_the_background_unless_the_order_says_otherwise() -> None:
    assert default_priority(is_background=False) is Priority.HIGH
    assert default_priority(is_background=True) is Priority.NORMAL


def test_a_priority_is_above_those_whose_runs_start_later() -> None:
    assert Priority.HIGH.is_above(Priority.NORMAL)
    assert not Priority.NORMAL.is_above(Priority.NORMAL)
    assert not Priority.LOW.is_above(Priority.HIGH)
