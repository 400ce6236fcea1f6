"""Numbers with a decimal comma or with points between groups, and forms that only look like a number."""

from fractions import Fraction

import pytest

from services.results.scoring.numbers.stated_number import stated_number

READ = [
    ("1.234,56", "1234.56"),
    ("Total: 1.250,50 €", "1250.5"),
    ("1 250,50", "1250.5"),
    ("R$ 25,50", "25.5"),
    ("€ 5,00", "5"),
    ("Die Antwort lautet 12,5 %.", "12.5"),
    ("1,5 kg", "1.5"),
    ("El total es 1.250 pesos.", "1250"),
    ("Das kostet insgesamt 1.084 Euro.", "1084"),
    ("In totale sono 1.084 persone.", "1084"),
    ("O total é de 1.084 reais.", "1084"),
    ("The total is 1.084 kg.", "1.084"),
    ("1.084", "1.084"),
    ("The answer is not 12 but 13.", "13"),
    ("The answer is the number 18.", "18"),
    ("Thus 18 tiles are needed for 36 square feet.", "18"),
    ("18 of the 36 tiles are red.", "18"),
    ("1/3 ≈ 0.333", "1/3"),
    ("The probability is 1/3, which is about 0.333.", "1/3"),
    ("• 42", "42"),
]
UNREAD = [
    *("1,5", "0,5", "(1,5 kg, 2 kg)", "1,23", "2.500.000", "192.168.0.1", "Respuesta: 1.250"),
    *("El resultado es 3.125.", "Das Ergebnis ist 1.250.", "La respuesta es 3,5"),
    *("one in four", "one out of five", "One.", "one", "no one"),
    *("Assume 12. Then contradiction.", "Suppose there are 12. This is impossible."),
    *("-|5|", "|-5|", 'Answer: 12"', "Answer: 12'", "Answer: 12 o'clock", "12ish", "72-ish", "25,-"),
    *("3.14…", "\\boxed{3.14\\ldots}", "84 at least", "第12", "12時", "午後3時", "3点钟", "8시"),
    *("The answer is 84... or 96?", "#### 72\n\n#### 73", "She spent $18, leaving $2.", "iPhone 15"),
    *("It happened in 1999, i.e. 25 years ago.", "1/3 ≈ 0.4"),
]


@pytest.mark.parametrize(("answer", "value"), READ)
def test_a_careful_reader_reads_one_number(answer: str, value: str) -> None:
    found = stated_number(answer)
    assert found is not None
    assert found.value == Fraction(value)


@pytest.mark.parametrize("answer", UNREAD)
def test_what_may_be_another_number_is_unread(answer: str) -> None:
    assert stated_number(answer) is None
