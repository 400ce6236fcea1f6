"""Options that are numbers: another number of the same digits names none of them."""

import pytest

from services.results.scoring.choices.reading import named_choice

NUMBERS = ("12", "15", "18", "21")
MONEY = ("$12", "$15")
LETTERS = ("A", "B", "C", "D")


@pytest.mark.parametrize("choices", [NUMBERS, MONEY])
@pytest.mark.parametrize(
    "answer",
    [
        "The answer is -12.",
        "The result is −12.",
        "Answer: -$12",
        "The answer is **-12**",
        "The answer is x = -12",
        "The answer is ±12",
        "The answer is √12",
        "The answer is .12",
        "The answer is >12",
    ],
)
def test_another_number_is_no_option(answer: str, choices: tuple[str, ...]) -> None:
    assert named_choice(answer, choices) is None
    assert named_choice(answer, LETTERS[: len(choices)], choices) is None


@pytest.mark.parametrize("answer", ["The answer is 15.", "Answer - 15", "B - 15", "**15**", "x = 15"])
def test_the_number_is_its_option(answer: str) -> None:
    assert named_choice(answer, LETTERS, NUMBERS) == 1


def test_an_option_may_be_negative() -> None:
    assert named_choice("The answer is -12.", LETTERS[:2], ("12", "-12")) == 1
