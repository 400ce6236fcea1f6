"""What is left at the end of a sentence, what it comes to, and lists of which none is the answer."""

import pytest

from services.results.scoring.numbers.stated_number import stated_number


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("She had 10, gave away 3, and has 7 left.", 7),
        ("She has 7 apples left out of 12.", 7),
        ("12 boys and 5 girls, that makes 17 kids.", 17),
        ("She bought 3 bags at $2 for a total of $6.", 6),
        ("5 is the difference between 8 and 3.", 5),
        ("Probably 26.", 26),
        ("3 × 10⁻² m", 0.03),
        ("| Item | Cost |\n|---|---|\n| A | 3 |\n| Total | 7 |", 7),
    ],
)
def test_the_number_is_read(answer: str, value: float) -> None:
    found = stated_number(answer)
    assert found is not None
    assert float(found.value) == value


@pytest.mark.parametrize(
    "answer",
    [
        "If she has 7 left, she gave 3.",
        "She has 3 left and he has 5 left.",
        "She ate 3, that's 3 more than 5.",
        '{"a": 1, "b": 2}',
        "Tom: 3, Ann: 4",
        "| Item | Cost |\n|---|---|\n| A | 3 |\n| B | 4 |",
        "1\n2\n3",
        "Assume x = 3.",
        "Certainly not 26.",
        "5 is the difference between 8 and 3, not the answer.",
        "x⁻¹",
        "I need 2 more pieces of information.",
        "Sure, here are 3 ways to do it.",
        "The temperature is 3 degrees below zero.",
        "It is 3 below zero.",
    ],
)
def test_what_is_not_plainly_one_number_is_unread(answer: str) -> None:
    assert stated_number(answer) is None
