"""A letter with nothing but a word on it, and a number that has the value of one choice."""

import pytest

from services.results.scoring.choices.reading import named_choice

LETTERS = ("A", "B", "C", "D")
CITIES = ("London", "Paris", "Berlin", "Madrid")
SHARES = ("10%", "25%", "50%", "100%")


@pytest.mark.parametrize(
    ("answer", "texts", "expected"),
    [
        ("B, 100%", CITIES, 1),
        ("B – 95 %", CITIES, 1),
        ("B (90% confident)", CITIES, 1),
        ("B, 20%", CITIES, None),
        ("B, 100%", SHARES, None),
        ("B is true.", CITIES, 1),
        ("B is true.", ("one", "two", "true", "false"), None),
        ("<B>", CITIES, 1),
        ("<think>", CITIES, None),
        ("Give C.", CITIES, 2),
        ("La B, sin duda.", CITIES, 1),
        ("B for Paris", CITIES, 1),
        ("B as in bravo", CITIES, 1),
        ("B for Berlin", CITIES, None),
        ("B for one", CITIES, None),
        ("4.0", ("2", "4", "8", "16"), 1),
        ("0.25", ("1/2", "1/4", "1/8", "3/4"), 1),
        ("-0.25", ("1/2", "1/4", "1/8", "3/4"), None),
        ("0.5", ("1/2", "2/4", "1/8", "3/4"), None),
        ("3.0", ("2", "4", "8", "16"), None),
    ],
)
def test_answer_that_is_nothing_but_a_choice(
    answer: str, texts: tuple[str, ...], expected: int | None
) -> None:
    assert named_choice(answer, LETTERS, texts) == expected
