"""Forms that models were seen to answer in."""

from collections.abc import Sequence

import pytest

from services.results.scoring.choices.reading import named_choice

LETTERS = ("A", "B", "C", "D")
PRESIDENTS = ("Thomas Jefferson", "John Adams", "Benjamin Franklin", "George Mason")


@pytest.mark.parametrize(
    ("answer", "choice"),
    [
        ("【答案】C <eoa>", "C"),
        ("【解析】A错。<eoe>\n【答案】: B <eoa>", "B"),
        ("因此，选D。", "D"),
        ("所以是B。", "B"),
        ("排除A和B，因此选项C正确。", "C"),
        ("所以，最可能的答案是B。", "B"),
        ("所以，不利于保温的是C选项。", "C"),
        ("因此，正确的说法是选项D。", "D"),
        ('所以，正确答案应该是C"neither"。', "C"),
        ("Given all this, the correct option is:\n\nThe answer is (C).", "C"),
        ("Thus the value is:\n\\[\n\\text{The answer is } (\\text{B})\n\\]", "B"),
        ("The ratio is $$\\frac{6}{48} = 0.125$$ The answer is (C).", "C"),
        ("Since the question asks for litres, the answer is (B) 40 l.", "B"),
        ("B. Immotile cilia syndrome\n\nExplanation: The lungs are affected.", "B"),
        ("D. Unilateral atrophy\n\nExplanation: The signs fit.", "D"),
        ("C. 12/48\n\nRationale: Both parents carry it.", "C"),
        # Cut, but no walk through the options, which begins with A.
        ("C. Pelvic ultrasound\n\nExplanation: The pain suggests a mass in the", "C"),
        ("The place should be\nTherefore, the answer is D.", "D"),
    ],
)
def test_the_letter_is_read(answer: str, choice: str) -> None:
    label = named_choice(answer, LETTERS)
    assert label is not None
    assert LETTERS[label] == choice


@pytest.mark.parametrize(
    "answer",
    [
        "A选项错误。因此，选项A的描述是错误的。",
        "可能的答案是B。",
        "所以，为A服务。",
        "因此，可以排除选项A。",
        'The answer is A "good" option.',
        'The answer is C "none of these" and D.',
        "B. Unwarranted.",
        "B. Unsound.",
        "The answer is (D) is unrelated to the passage.",
        "A. Pelvic ultrasound\n\nExplanation: The pain suggests a mass in the",
        "【答案】A、B、C <eoa>",
        "The answer (a letter) is B or C.",
    ],
)
def test_an_unclear_letter_is_unread(answer: str) -> None:
    assert named_choice(answer, LETTERS) is None


@pytest.mark.parametrize(
    ("answer", "choice"),
    [
        ("The answer (Yes or No) is No.", "no"),
        ("The answer (yes or no) is \n\nYes", "yes"),
        ("Therefore, the answer (Yes or No) is: Yes, the bridge carries both.", "yes"),
        ("So the answer is yes. Therefore, the answer (Yes or No) is No.", None),
        ("The answer (Yes or No) is No, but with a caveat.", None),
        ("The answer (Yes or No) is not known.", None),
    ],
)
def test_words_in_brackets_belong_to_the_statement(answer: str, choice: str | None) -> None:
    label = named_choice(answer, ("yes", "no"))
    assert (None if label is None else ("yes", "no")[label]) == choice


@pytest.mark.parametrize(
    ("choices", "texts"), [(LETTERS, PRESIDENTS), (PRESIDENTS, ())], ids=["letters", "texts"]
)
def test_an_initial_is_no_letter_of_an_option(choices: Sequence[str], texts: Sequence[str]) -> None:
    assert named_choice("B. Franklin", choices, texts) is None
    assert named_choice("B. Franklin flew a kite.", choices, texts) is None
    assert named_choice("B. Mason", choices, texts) is None
    assert named_choice("B. John Adams", choices, texts) == 1
    assert named_choice("B. Adams", choices, texts) == 1
