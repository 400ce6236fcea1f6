"""Answers that take back what they said first, and answers that only waver; and other forms of few words."""

import pytest

from services.results.scoring.choices.reading import named_choice

LETTERS = ("A", "B", "C", "D")
PLANETS = ("Mercury", "Venus", "Earth", "Mars")


@pytest.mark.parametrize(
    "answer",
    [
        "The answer is A. Wait, no: it is B.",
        "The answer is A. Hold on, it is B.",
        "The answer is A. Sorry, I meant B.",
        "The answer is A. Oops, I meant to say B.",
        "A. Correction: B.",
        "A — no, sorry, B.",
        "A, or rather B",
        "The answer is A.\n\nEdit: B.",
        "Answer: A\n\nRevised answer: B",
        "Answer: A\nWait, that's wrong.\nAnswer: B",
        "**A**\n\n*Edit: I misread the question. It should be B.*",
        "\\boxed{A}\n\nWait, I misread. \\boxed{B}",
        "\\boxed{A}\n\nActually, let me recheck: Venus is hotter.\n\n\\boxed{B}",
        "My first answer was A, but after checking it's B.",
        "I was going to say A, but B.",
        "Initially I thought A. Now I believe B.",
        "I take that back: B.",
        "I was torn between A and B, but B.",
        "Apologies for the confusion: B.",
        "Is it B? Yes.",
        "One might pick A, yet B is right.",
    ],
)
def test_a_correction_replaces_what_it_takes_back(answer: str) -> None:
    assert named_choice(answer, LETTERS, PLANETS) == 1


@pytest.mark.parametrize(
    "answer",
    [
        "The answer is A... wait, no... I'm not sure.",
        "The answer is A. Wait, it might be B.",
        "The answer is A. Wait, is it B?",
        "The answer is A. But B is also right.",
        "The answer is A. Actually, B is wrong as well.",
        "The answer is A. Actually, B.",
        "Answer: A\nAnswer: B",
        "Answer: A. Wait, let me recheck: B.",
        "Initially I thought A. Now I am not sure.",
        "I was going to say A. But B fits.",
        "Is it B? No.",
        "I was torn between A and B.",
        "I apologize: I cannot tell.",
        "In some textbooks the answer is B.",
        "Scratch A.",
        "Mercury\nor rather\nVenus",
    ],
)
def test_what_only_wavers_is_unread(answer: str) -> None:
    assert named_choice(answer, LETTERS, PLANETS) is None


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "Just B.",
            "Final choice: B.",
            "Hmm... B.",
            "Out of the four options, B.",
            "Let me go with B then.",
        ),
        *("Bottom line: B.", "My vote: B.", "Tick B.", "We are left with B.", "B is the only one left."),
        *(
            "B, no question about it.",
            "B, probably.",
            "I'd lean B.",
            "It'd have to be B.",
            "The safest option is B.",
        ),
        *(
            "Step 1: list planets.\nStep 2: compare.\nStep 3: B",
            "---\n**B**\n---",
            "| Answer |\n|---|\n| B |",
        ),
        "| Question | Answer |\n|---|---|\n| 1 | B |",
        "B \ufffd",
        '{"selected": "B"}',
        '{"correct": "B", "incorrect": ["A", "C", "D"]}',
        '{"A": false, "B": true, "C": false, "D": false}',
        "A. Wrong. B. Right. C. Wrong. D. Wrong.",
        "A错误,B正确,C错误,D错误。",
        "Answer: B\n\nExplanation: A is Mercury, and C is Earth, D is Mars.",
        *("After careful consideration, B.", "The winner is B.", "B is chosen.", "Option B is my selection."),
        *("So... B.", "B all the way."),
        "It is Venus, thanks to its atmosphere.",
    ],
)
def test_few_words_that_settle_are_read(answer: str) -> None:
    assert named_choice(answer, LETTERS, PLANETS) == 1


@pytest.mark.parametrize(
    "answer",
    [
        *("Start with B: Venus is hot.", "We are left with A and B.", "The final option is correct, or B."),
        *(
            "B is likely correct, though C has merit.",
            "Out of the four options, A and B.",
            "Easily wrong: B.",
        ),
        '{"A": true, "B": true, "C": false, "D": false}',
        '{"incorrect": "B"}',
        '{"correct": true, "answer": "A or B"}',
        "A错误,B正确,C正确,D错误。",
        "| A | B |\n|---|---|\n| 1 | 2 |",
    ],
)
def test_few_words_that_do_not_settle_are_unread(answer: str) -> None:
    assert named_choice(answer, LETTERS, PLANETS) is None
