"""Answers, in other languages than English, that pass one option by for another."""

import pytest

from services.results.scoring.choices.reading import named_choice

LETTERS = ("A", "B", "C", "D")


@pytest.mark.parametrize(
    "answer",
    [
        "No es A, sino B.",
        "La respuesta no es A, sino B.",
        "La risposta non è A, ma B.",
        "A resposta não é A, mas B.",
        "Ce n'est pas A, mais B.",
        "Die Antwort ist nicht A, sondern B.",
        "不是A，而是B。",
        "答案是B，不是A。",
        "L'opzione B è corretta.",
        "La correcta es la B.",
        "Credo che la risposta corretta sia la B.",
    ],
)
def test_the_option_that_is_right_is_read(answer: str) -> None:
    assert named_choice(answer, LETTERS) == 1


@pytest.mark.parametrize(
    "answer",
    [
        "No es A, sino B o C.",
        "La risposta non è A, ma B è sbagliata.",
        "A resposta não é A, mas B também não.",
        "不是A，而是B或C。",
        "不是A，不是B。",
        "L'opzione B non è corretta.",
        "Non credo che la risposta sia B.",
        "Es posible que la respuesta sea B.",
        "La correcta es la B o la C.",
    ],
)
def test_what_leaves_it_open_is_unread(answer: str) -> None:
    assert named_choice(answer, LETTERS) is None
