"""Signs and separators of numbers in many languages, and sentences that state no number."""

from fractions import Fraction

import pytest

from services.results.scoring.numbers.stated_number import stated_number


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("Ответ: −42", -42),
        ("Ответ: -3.5", Fraction(-7, 2)),
        ("Правильный ответ -42", -42),
        ("Ответ - 42", 42),
        ("Відповідь: **-42**", -42),
        ("उत्तर -42", -42),
        ("Ответ: минус 42", -42),
        ("答案是负42。", -42),
        ("マイナス42", -42),
        ("気温は氷点下5度です。", -5),
        ("영하 42도", -42),
        ("El resultado es menos 5.", -5),
        ("La température est de moins 5 degrés.", -5),
        ("Fa meno 5", -5),
        ("−½", Fraction(-1, 2)),
        ("-3½", Fraction(-7, 2)),
        ("There are no solutions, so the answer is 0.", 0),
        ("The function is undefined at 3 points.", 3),
        ("0.5 (or 50%)", Fraction(1, 2)),
        ("72 (that is 6 dozen)", 72),
        ("Antwort: 0.250", Fraction(1, 4)),
        ("The answer is 1.250.", Fraction(5, 4)),
    ],
)
def test_the_number_is_read_with_its_sign(answer: str, value: Fraction) -> None:
    found = stated_number(answer)
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize(
    "answer",
    [
        "正负5",
        "plus ou moins 5",
        "Undefined (division by 0)",
        "The limit does not exist at 0.",
        "The expression is undefined at x = 0.",
        "No real solutions, since the discriminant is -4.",
        "There is no answer because 5 is prime.",
        "18 pencils are shared among 3 children.",
        "72 (or 73)",
        "72 (73 if both ends count)",
        "The answer is 72 (or 73 if you count both).",
        "Respuesta: 1.250",
        "Die Antwort ist 1.250.",
    ],
)
def test_what_is_not_plainly_one_number_is_unread(answer: str) -> None:
    assert stated_number(answer) is None
