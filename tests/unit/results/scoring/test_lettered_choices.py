"""Choices that are letters are read with the texts that they stand for."""

import pytest

from services.results.scoring.choices.reading import named_choice

LETTERS = ("A", "B", "C", "D")
TEXTS = ("a dry lake", "both lakes", "0.5", "B")


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("B", 1),
        ("B. both lakes", 1),
        ("(C) 0.5", 2),
        ("The correct answer is **A) a dry lake**.", 0),
        ("Both lakes", 1),
        ("0.5", 2),
        # A letter is a letter, though one of the texts reads the same.
        ("The answer is B.", 1),
        ("A. both lakes", None),
        ("The answer is (C) a dry lake.", None),
    ],
)
def test_a_letter_and_its_text_name_a_choice_together(text: str, label: int | None) -> None:
    assert named_choice(text, LETTERS, TEXTS) == label


def test_texts_that_are_the_same_leave_the_letters() -> None:
    assert named_choice("B", LETTERS, ("x", "y", "y", "z")) == 1
    assert named_choice("y", LETTERS, ("x", "y", "y", "z")) is None
