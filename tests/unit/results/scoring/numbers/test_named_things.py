"""Numbers of names and dates, and numbers that are only guessed or supposed, are no answers."""

import pytest

from services.results.scoring.answer_marks import final_answer
from services.results.scoring.numbers.stated_number import stated_number


@pytest.mark.parametrize(
    "answer",
    [
        "ISO 9001",
        "It follows ISO 9001.",
        "There were 12 passengers. They flew in a Boeing 747.",
        "The answer is Python 3.",
        "It was the 17-year-old.",
        "The 12-inch pipe has the lowest present worth.",
        "The prize is behind door 2.",
        "Worker 4 is the fastest.",
        "The answer is type 2 diabetes.",
        "It was built in 12 rounds. That was World War 2.",
        "The clause is in §4.",
        "The answer is May 17, 2024.",
        "17 May",
        "September 1982 has more income.",
        "The season of 1994/95.",
        "Boeing 747",
        "It's Boeing 747.",
        "Airbus 380.",
        "**Gemini 12**",
        "Q3 2024",
        "The answer is Q2 of 2023.",
        "5 pm",
        "It opens at 10 a.m.",
    ],
)
def test_the_number_of_a_name_or_of_a_date_is_not_read(answer: str) -> None:
    assert stated_number(final_answer(answer)) is None


@pytest.mark.parametrize(
    "answer",
    [
        "18. No.",
        "18. Hmm, 20?",
        "Maybe 18. Maybe 20.",
        "I think 18, but it could be 20.",
        "I doubt it's 20.",
        "20 is too many.",
        "Nobody got 20.",
        "If it were 20, it would fail.",
        "Let x = 20.",
        "Given 20 apples, I cannot say.",
        "78 % ... while 20 %",
        "the square of 20",
    ],
)
def test_what_is_guessed_supposed_or_denied_is_not_read(answer: str) -> None:
    assert stated_number(final_answer(answer)) is None


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("This gives Tom 20 apples.", 20),
        ("which leaves Maria 20.", 20),
        ("Also hat Anna 20 Äpfel.", 20),
        ("It costs USD 20.", 20),
        ("Total 20", 20),
        ("Profit 20", 20),
        ("Approximately 20", 20),
        ("The bond is 20 pm long.", 20),
        ("THE ANSWER IS 20.", 20),
        ("The Final Answer Is 20.", 20),
        ("So each player 20.", 20),
        ("The hall can seat 20 at most tables, so it can seat 20.", 20),
        ("It is a 20-foot board.", 20),
        ("He bought 5 too many.", 5),
        ("Let x be the number, then x = 20.", 20),
        ("In 1492.", 1492),
        ("It's 20.", 20),
        ("They're 20", 20),
        ("On May 17 there were 30 - 10 = 20.", 20),
        ("18. No, 20.", 20),
        ("The area is 20 (see Section 4).", 20),
    ],
)
def test_a_number_beside_a_name_counts(answer: str, value: int) -> None:
    found = stated_number(final_answer(answer))
    assert found is not None
    assert found.value == value
