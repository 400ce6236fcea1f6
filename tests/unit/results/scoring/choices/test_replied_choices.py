"""Replies of one word with an explanation, numbers among words, and short sentences that settle."""

import pytest

from services.results.scoring.choices.reading import named_choice

LETTERS = ("A", "B", "C", "D")
READ = {
    ("no", "yes"): [
        ("Yes, copper conducts well.", 1),
        ("No; glass is an insulator.", 0),
        ("Yes it is", 1),
        ("No it isn't", 0),
        ("So no, it did not rain.", 0),
    ],
    ("True", "False"): [
        ("TRUE - water boils at 100 degrees", 0),
        ("**False** - bats are not blind.", 1),
        ("I'd mark this as False.", 1),
        ("The statement appears to be false.", 1),
        ("This is a true statement.", 0),
    ],
    ("entailment", "neutral", "contradiction"): [("Neutral: the hypothesis may be true.", 1)],
    ("12", "15", "18"): [("24 - 6 = 18 apples", 2), ("The total is 15 apples.", 1), ("Not 12 but 15.", 1)],
    LETTERS: [
        ("Easy one: C.", 2),
        ("Pretty sure it's C.", 2),
        ("It can only be C.", 2),
        ("Let's go with C.", 2),
        ("I'll take C.", 2),
        ("C imo", 2),
        ("C. Final answer.", 2),
        ("C is what you're looking for.", 2),
        ("C is the only one that fits.", 2),
        ("Not A, not B. C.", 2),
        ("B might seem right, however the right answer is C.", 2),
        ("My answer was B, but after checking I change it to C.", 2),
        ("C, definitely not B", 2),
        ("Hm, B? No, C.", 2),
        ("<b>C</b>", 2),
        ("<p>The answer is <strong>C</strong>.</p>", 2),
        ("Answer: C | Confidence: 95", 2),
        ("D) None of the above", 3),
        ("\\boxed{\\textbf{(D)}\\ 45}", 3),
        ("应该选C。", 2),
        ("Я выбираю C.", 2),
        ("A letra C é a correta.", 2),
    ],
}
UNREAD = {
    ("no", "yes"): [
        "Yes, but also no.",
        "Yes, you asked for one word. No",
        "Yes, the claim is unsupported.",
        "Yes, maybe.",
        "Yes, I'd be happy to help! The claim is false.",
        "Yes, let's think step by step. The man is dead. So he can't.",
    ],
    ("2", "1", "3"): ["(1)", "option 2", "There are 2 reasons.", "2%"],
    LETTERS: [
        "Answer: A & C",
        "The answer is A∧B.",
        "The correct options are A to C.",
        "Answer: ¬A",
        "A = 5, B = 3, so A > B.",
        "The answer is A. But B is better.",
        "Answer: A. However, B is better supported by the data.",
        "The answer is A. Strike that.",
        "The answer is A. I lied.",
        *("It is anything but C.", "E. coli", "The mark was C.", "Grade: B", "C>D", "Some would say C."),
    ],
}


@pytest.mark.parametrize(
    ("choices", "answer", "label"), [(choices, *case) for choices, cases in READ.items() for case in cases]
)
def test_a_short_answer_settles_on_its_choice(choices: tuple[str, ...], answer: str, label: int) -> None:
    assert named_choice(answer, choices) == label


@pytest.mark.parametrize(
    ("choices", "answer"), [(choices, text) for choices, texts in UNREAD.items() for text in texts]
)
def test_a_short_answer_that_settles_on_none_is_unread(choices: tuple[str, ...], answer: str) -> None:
    assert named_choice(answer, choices) is None


def test_a_text_is_named_in_the_plural() -> None:
    texts = ("mitochondrion", "ribosome", "nucleus", "vacuole")
    assert named_choice("Mitochondria", LETTERS, texts) == 0
    assert named_choice("Ribosomes make proteins.", LETTERS, texts) == 1
