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


@pytest.mark.parametrize(
    ("texts", "text", "label"),
    [
        (("0", "1", "-1", "12"), "C. -1", 2),
        (("0", "1", "-1", "12"), "The correct answer is **C) -1**.", 2),
        (("0", "1", "-1", "12"), "C - -1", 2),
        (("0", "1", "-1", "12"), "B. -1", None),
        (("1", "-1", "i", "-i"), "(C) i", 2),
        (("1", "-1", "i", "-i"), "C. -i", None),
        ((". . . a rash.", ". . . a fever.", "both .", "x"), "The answer is (A) . . . a rash..", 0),
        ((". . . a rash.", ". . . a fever.", "both .", "x"), "The correct answer is **C) both .**.", 2),
        (("{1, 2}", "{1, -2}", "{2}", "{}x"), "B) {1, -2}", 1),
        (("A = {x, y}", "B = {x}", "C", "none"), "$\\boxed{\\text{A. A = {x, y}}}$", 0),
        (("Yes, p=3.", "No.", "Yes, p=2.", "Never"), "A (Yes, p=3.)", 0),
        (("A only", "B only", "Both A and B", "Neither"), "The answer is C. Both A and B", 2),
    ],
)
def test_texts_of_every_kind_stand_beside_their_letter(
    texts: tuple[str, ...], text: str, label: int | None
) -> None:
    assert named_choice(text, LETTERS, texts) == label
