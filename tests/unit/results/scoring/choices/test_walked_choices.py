"""Answers that walk over their options, compare two, rank them, or take a first one back."""

import pytest

from services.results.scoring.choices.reading import named_choice

LETTERS = ("A", "B", "C", "D")
CITIES = ("London", "Paris", "Berlin", "Madrid")


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("It comes down to A vs B, and A wins.", 0),
        ("Between A and B, B comes out on top.", 1),
        ("London? No. Paris? Yes.", 1),
        ("Is it A? No. Is it B? Yes.", 1),
        ("How about London? No, that is in England. Paris? Yes, that is in France.", 1),
        ("A? Nope.\nB? Yes.\nC? No.\nD? No.", 1),
        ("- [ ] A. London\n- [x] B. Paris\n- [ ] C. Berlin\n- [ ] D. Madrid", 1),
        ("The best answer is B; the runner-up is C.", 1),
        ("You should pick B", 1),
        ("B, although A is a tempting choice.", 1),
        ("The best answer is B. The second-best would be C.", 1),
        ("It lies on the Seine. B", 1),
        ("I'm fairly confident it's B.", 1),
        ("Alternativa B.", 1),
        ("Answer: A\n\nCorrection: B", 1),
        ("The answer is A. No, wait: B.", 1),
        ("A... wait, no. It is in France, so B.", 1),
        ("12 + 9 = 21\n\nD", 3),
        ("Paris is in France.\n#### B", 1),
        ("assistant\n\nB", 1),
        ("选项B正确，其他选项A、C、D都不对。", 1),
        ("La B es correcta, las demás son falsas.", 1),
        ("Antwoord B is correct.", 1),
        ("B is correct, A is not.", 1),
        ("Option B matches the description best.", 1),
        ("Although many believe it is A, it is B.", 1),
        ("After ruling out A, C, and D, B remains.", 1),
    ],
)
def test_the_option_that_is_left_at_the_end_is_read(answer: str, label: int) -> None:
    assert named_choice(answer, LETTERS, CITIES) == label


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "The second best answer is C.",
            "The next best choice is C.",
            "C is a close second.",
            "Second-best: C",
        ),
        *(
            "C is the most common mistake.",
            "Let us consider each option. A",
            "It is by E. B. White or C. S. Lewis. A",
        ),
        *("C or higher", "at least C", "C and up", "up to C", "C (or D)"),
        *("A versus B: neither wins.", "If A wins, then B loses.", "A wins, but B is also right."),
        *(
            "A? Yes. B? Yes.",
            "A? No. B? Maybe.",
            "A? No. B? Yes, but C is better.",
            "A? No. B? Yes. Actually no.",
        ),
        *("A? Yes. B? No. Is that right? No.", "A? No. B? Yes. Then again, A? Yes."),
        *("- [x] A\n- [x] B\n- [ ] C\n- [ ] D", "- [ ] A\n- [ ] B\n- [ ] C\n- [ ] D"),
        *("You should pick B if it is France.", "You must choose one of A, B, C, D"),
        *(
            "A. Scratch that, B. Or C.",
            "A. Correction: not B.",
            "A. Wait, no.",
            "B. Wait, no, let me check A.",
        ),
        *("The wrong answer is\n\nB", "Choose one\n\nA\n\nB\n\nC\n\nD", "text\n#### B\n#### C"),
        *("B正确，但其他选项C也正确。", "La respuesta es B. Las otras opciones también son correctas."),
    ],
)
def test_an_option_that_is_only_ranked_bounded_or_asked_about_is_unread(answer: str) -> None:
    assert named_choice(answer, LETTERS, CITIES) is None


@pytest.mark.parametrize("answer", ["Yes, no doubt about it.", "Yes, there is no reason to think otherwise."])
def test_a_doubt_that_is_denied_is_none(answer: str) -> None:
    assert named_choice(answer, ("yes", "no")) == 0


def test_what_some_say_is_no_answer() -> None:
    assert named_choice("No. Although some say yes, the evidence is against it.", ("yes", "no")) == 1
    texts = ("It heats the water", "It lowers the energy")
    assert named_choice("A catalyst lowers the energy.", ("A", "B"), texts) == 1
