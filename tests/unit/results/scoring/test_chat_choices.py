"""Answers of chats that work towards a choice, compare the options, and explain at length."""

import pytest

from services.results.scoring.choices.reading import named_choice

LETTERS = ("A", "B", "C", "D")
METALS = ("iron", "copper", "zinc", "silver")
SPEEDS = ("12 m/s", "24 m/s", "36 m/s", "48 m/s")
CLAIMS = ("1 and 2 only", "2 and 3 only", "1, 2 and 3", "none of them")
CITIES = ("London", "Paris", "Berlin", "Rome")

ELIMINATION = """A. iron: rusts, excluded.
B. copper: turns green, as here.
C. zinc: dull.
D. silver: dear.

Based on this, the metal of the roof is:

B. copper"""
HEADING_OF_OTHERS = """The correct answer is **C. zinc**.

**Why the other options are incorrect:**

* **A. iron** rusts.
* **B. copper** turns green.
* **D. silver** costs too much."""
PROSE_OF_OTHERS = """The answer is B.

Copper conducts well, is cheap, and is easily drawn. Silver (D) conducts more, but its price rules it out.
Iron (A) rusts and zinc (C) breaks.

In summary, copper it is."""

# By the texts of the letters: the answer, and the place of the option that it names.
LETTERED = {
    METALS: [
        ("The wire conducts best of all.\n\nTherefore, the metal in the wire is:\n\n**D. silver**", 3),
        (
            "Symbol Cu stands for it.\n\nThe most plausible metal is: **B. copper**\n\nThis fits its colour.",
            1,
        ),
        ("Let us see.\n\n### Conclusion\n\nOption C seems the most plausible.", 2),
        ("It rusts in rain.\n\nThis matches option A.", 0),
        ("It rusts.\n\nTherefore, the metal must be iron (Option A).", 0),
        ("It turns green.\n\nSo the best match is copper (B).", 1),
        ("It is used to galvanise.\n\nGiven the options, the closest one is **C. zinc**.", 2),
        ("It tarnishes.\n\nOf the four, the data best correspond to option D (silver).", 3),
        (ELIMINATION, 1),
        (HEADING_OF_OTHERS, 2),
        (PROSE_OF_OTHERS, 1),
        ("Let me compare.\n\nTherefore, the most appropriate answer is:\n\n\\[ \\boxed{A} \\]", 0),
        ("I would lean towards **option D (silver)**, as it conducts best.\n\nIt is a close call.", 3),
        ("Statement 1: it rusts.\nStatement 2: it is magnetic.\n\nBoth hold, so the answer is A.", 0),
        ("Both facts matter.\n\n* **Input:** a green roof\n* **Text:** old\n\nThe answer is B.", 1),
    ],
    SPEEDS: [
        ("v = 6 * 4 = 24 m/s.\n\nThe closest value is B. 24 m/s", 1),
        ("v = 6 * 6.\n\nTherefore, the speed after six seconds is: C. 36 m/s.", 2),
        (
            "None is exact: I get 47 m/s. The closest option is D. 48 m/s.\n\nHope this helps!",
            3,
        ),
    ],
    CLAIMS: [
        ("1 holds, 2 holds, 3 fails.\n\nThe correct combination is **A. 1 and 2 only**.", 0),
        ("All three hold.\n\nHence, statement set C is right, so the correct choice is C. 1, 2 and 3", 2),
    ],
}

# Their texts are not known.
UNKNOWN = [
    ("The correct answer is (C) the speed of light in a vacuum.", 2),
    ("The correct answer is (B) not the sum but tanh(x).", None),
    ("answer: (D) A = 2-butanol, B = water", 3),
    ("The correct answer is (A) ~0.81 c", 0),
    ("The answer is (B) red or (C) blue.", None),
    ("The answer is (B) if x is even.", None),
]
LONG_UNCLEAR = [
    "Let us see.\n\nA heavy roof (option A) would most likely rust.",
    "The roof is green.\n\nTherefore, it is either B. copper or C. zinc.",
    "Let us see.\n\nThe most likely options are A and D.",
    "Let us see.\n\nTherefore, the metal is not B. copper.",
    "Let us see.\n\nOption B is the least likely.",
    "Let us see.\n\nThe wrong option is C.",
    "Let us see.\n\nOption C: while the colour is right, the weight is not.",
    "The answer is B. Copper turns green. Wait, the roof is grey, so option C is better.",
    "The answer is B. Copper turns green. However, D is also correct.",
    "The answer is B. Copper turns green. Actually, zinc does not rust either.",
    "The answer is B. Copper turns green. On reflection, this is wrong.",
    "The answer is B. Copper turns green. I am not sure, though.",
    "The answer is B. It turns green. Is it zinc?",
    "The closest option is B. copper.\n\nHowever, none of the given options is right.",
    "Therefore, it could be option B.\n\nMore data are needed.",
    "If the roof is green, the best match is option B.\n\nIf it is grey, it is another.",
    "Therefore, the best match is option C.\n\nSo the best match is option A.",
    "Students often conclude that the best match is option B.\n\nThat is all.",
    "This is close to option B, but the correct value is another.\n\nThat is all.",
    "Therefore, the metals that do not rust are B, C and D.\n\nFor the one that rusts (A), see above.",
]


@pytest.mark.parametrize(
    ("texts", "answer", "place"), [(texts, *one) for texts, cases in LETTERED.items() for one in cases]
)
def test_a_conclusion_names_its_option(texts: tuple[str, ...], answer: str, place: int) -> None:
    assert named_choice(answer, LETTERS, texts) == place


@pytest.mark.parametrize(("answer", "place"), UNKNOWN)
def test_text_behind_a_letter_is_read_where_it_is_not_known(answer: str, place: int | None) -> None:
    assert named_choice(answer, LETTERS) == place


@pytest.mark.parametrize("answer", LONG_UNCLEAR)
def test_a_long_answer_without_one_conclusion_names_none(answer: str) -> None:
    assert named_choice(answer, LETTERS, METALS) is None


def test_a_sentence_about_another_choice_takes_nothing_back() -> None:
    assert named_choice("Paris.\n\nLondon is the capital of England.", CITIES) == 1


def test_a_conclusion_that_may_be_cut_is_not_read() -> None:
    answer = "The wire conducts best.\n\nTherefore, the metal is most likely option D"
    assert named_choice(answer, LETTERS, METALS, is_cut=True) is None
