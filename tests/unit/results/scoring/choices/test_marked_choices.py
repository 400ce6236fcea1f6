"""Choices in tags, behind what is struck out, and behind a correction or the view of others."""

import pytest

from services.results.scoring.choices.reading import named_choice

LETTERS = ("A", "B", "C", "D")
METALS = ("iron", "copper", "zinc", "silver")
READ = [
    *((f"It conducts well.\n<{tag}>B</{tag}>", 1) for tag in ("choice", "result", "ans", "option", "Label")),
    ("<result>\n(C) zinc\n</result>", 2),
    ("~~A~~ B", 1),
    ("The answer is ~~iron~~ copper.", 1),
    ("At first I thought it was zinc. Actually, it is copper.", 1),
    ("On second thought, D.", 3),
    ("Correction: C, not B.", 2),
    ("Definitely B. People often confuse it with zinc.", 1),
    ("Most people think that it is iron. It isn't: it's copper.", 1),
    ("Many people would say A (iron), but the metal is in fact B (copper).", 1),
    ("Not iron but copper.", 1),
    ("Between A and B, B is the better fit.", 1),
    ("You want option B - copper.", 1),
    ("B alone is right.", 1),
    ("A ✗ B ✓ C ✗ D ✗", 1),
    ("Ich würde B wählen.", 1),
    ("Je choisis C.", 2),
    ("La bonne réponse est la réponse D.", 3),
]
UNREAD = [
    "<choice>B or C</choice>",
    "~~B~~",
    "The answer is B. Actually, C.",
    "The answer is B. Let me know if C is what you meant.",
    "Answer: B\nOn reflection I correct this.\nAnswer: D",
    "Many people would say A (iron).",
    "Not only iron but copper.",
    "Answer: B. Most people choose C.",
]


@pytest.mark.parametrize(("answer", "label"), READ)
def test_what_the_answer_settles_on_is_read(answer: str, label: int) -> None:
    assert named_choice(answer, LETTERS, METALS) == label


@pytest.mark.parametrize("answer", UNREAD)
def test_what_it_does_not_settle_on_is_unread(answer: str) -> None:
    assert named_choice(answer, LETTERS, METALS) is None


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("Q: Is it so?\nA: no", 0),
        ("According to the text, no, she was away.", 0),
        ("Based on the text, yes, she was there.", 1),
        ("no. 2", None),
    ],
)
def test_a_reply_is_read_behind_its_question_and_its_source(answer: str, label: int | None) -> None:
    assert named_choice(answer, ("no", "yes")) == label
