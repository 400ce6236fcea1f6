"""Sentences about a statement, where the choices are true and false."""

import pytest

from services.results.scoring.choices.reading import named_choice

TRUTH = ("True", "False")
SAID = {
    "True": [
        "The claim is accurate.",
        "That statement is indeed correct.",
        "This is correct.",
        "Yes, it is true.",
        "So the given statement holds.",
        "The statement is true. It would be false if the set were empty.",
        "I think that the statement is right.",
        "The proposition must be valid, since all cases are covered.",
    ],
    "False": [
        "The claim is not accurate.",
        "This statement is not correct.",
        "The sentence is wrong because whales are mammals.",
        "It is not true that all metals are heavy.",
        "It's a common misconception.",
        "No, that's incorrect.",
        "The statement cannot be true.",
        "The inequality does not hold.",
        "7 is odd. Thus the statement that 7 is even is inaccurate.",
    ],
}
NOT_SAID = [
    "That is not true.",
    "It is not false.",
    "The claim is not entirely accurate.",
    "The statement is correct only if x is even.",
    "The statement is true, but the reason is wrong.",
    "The statement may be true.",
    "Some say that the statement is true.",
    "The first claim is correct. The second claim is wrong.",
    "Is the statement true?",
    "If x is even, the statement is right.",
]


@pytest.mark.parametrize(
    ("label", "answer"), [(label, text) for label, texts in SAID.items() for text in texts]
)
def test_what_is_said_of_the_statement_is_the_choice(label: str, answer: str) -> None:
    assert named_choice(answer, TRUTH) == TRUTH.index(label)


@pytest.mark.parametrize("answer", NOT_SAID)
def test_a_statement_that_is_not_plainly_judged_is_unread(answer: str) -> None:
    assert named_choice(answer, TRUTH) is None


def test_with_a_third_choice_what_is_not_true_need_not_be_false() -> None:
    assert named_choice("The claim is not accurate.", ("True", "False", "Neither")) is None
