"""Digits alone are read at once, as they are read where all else is looked for."""

import pytest

from services.results.scoring.numbers.stated_number import stated_number
from services.results.scoring.numbers.written_numbers import bare_number, read_number


@pytest.mark.parametrize(
    "text", ["0", "-0", "7", "-12", "007", "3.50", "-0.125", "1000.00", "123456789012345"]
)
def test_bare_digits_are_read_as_a_claim_is(text: str) -> None:
    assert bare_number(text) == read_number(text) == stated_number(f" {text}\n")


@pytest.mark.parametrize(
    "text", ["70.000", "-1.000", "5.", ".5", "1,200", "+5", "5%", "5 apples", "٥", "1e3", ""]
)
def test_all_else_is_left_to_the_reader(text: str) -> None:
    assert bare_number(text) is None


def test_bare_digits_of_an_answer_that_was_cut_may_lack_their_end() -> None:
    assert stated_number("12", is_cut=True) is None
