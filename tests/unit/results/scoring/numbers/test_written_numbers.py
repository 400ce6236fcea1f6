"""Numbers as people write them: which are read, which are not, and that no answer takes long."""

from fractions import Fraction

import pytest

from services.results.scoring.numbers.stated_number import stated_number
from tests.fakes.thorough_cases import first_cases


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", 42),
        ("The answer is 42.", 42),
        ("First 3, then 5, so 8!", 8),
        ("#### 1,234", 1234),
        ("**42**", 42),
        ("_42_", 42),
        ("-5", -5),
        ("\u22125", -5),
        ("it is –5", -5),
        ("x=-5", -5),
        ("(-5)", -5),
        ("minus 5", -5),
        ("negative four", -4),
        ("It is twelve.", 12),
        ("The final count comes out to exactly **forty-two**.", 42),
        ("two million three hundred thousand and five", 2_300_005),
        ("negative 7 degrees", -7),
        ("+.5", Fraction(1, 2)),
        ("-0", 0),
        ("100.", 100),
        ("3.14159...", Fraction("3.14159")),
        ("1,234,567.89", Fraction("1234567.89")),
        ("1'000", 1000),
        ("1_000", 1000),
        ("1\u202f000\u202f000", 1_000_000),
        ("1 000 000", 1_000_000),
        ("1 250 €", 1250),
        ("1{,}234", 1234),
        ("$1,234.50", Fraction("1234.5")),
        ("-$5", -5),
        ("$-5", -5),
        ("$42$", 42),
        ("5€", 5),
        ("5 km", 5),
        ("5km", 5),
        ("1e6", 1_000_000),
        ("1.5E-3", Fraction("0.0015")),
        ("3×10^5", 300_000),
        (r"3\times10^{-2}", Fraction("0.03")),
        ("3 × 10⁵", 300_000),
        ("3/4", Fraction(3, 4)),
        ("½", Fraction(1, 2)),
        ("1½ cups", Fraction(3, 2)),
        ("1 1/2 cups", Fraction(3, 2)),
        ("-1 1/2", Fraction(-3, 2)),
        (r"\frac{3}{4}", Fraction(3, 4)),
        (r"-\dfrac{1}{2}", Fraction(-1, 2)),
        (r"1\frac{1}{2}", Fraction(3, 2)),
        (r"\boxed{42} as step 3 says", 42),
        (r"\boxed{\frac{1}{2}}", Fraction(1, 2)),
        (r"\boxed{\text{42}}", 42),
        ("2.5 billion dollars", 2_500_000_000),
        ("H2O is 5", 5),
        ("٤٢", 42),
        ("１２", 12),
    ],
)
def test_a_number_is_read_as_people_write_it(text: str, value: Fraction | int) -> None:
    found = stated_number(text)
    assert found is not None
    assert found.value == value
    assert not found.is_percent


@pytest.mark.parametrize("text", ["80%", "80 %", r"80\%", "80 percent", "80 per cent of it"])
def test_a_percent_sign_is_reported_and_does_not_change_the_number(text: str) -> None:
    found = stated_number(text)
    assert found is not None
    assert found.value == 80
    assert found.is_percent


@pytest.mark.parametrize(
    "text",
    [
        *("", "no number", "...", "-", "%"),
        # Two numbers, or one in a way that is not settled.
        *("1,5", "1.2.3", "1.000.000", "100 200", "3 : 4"),
        *("5-7", "about 3–4", "10-4", "12:30", "2020-05-01", "12/05/2020", "1/2/3"),
        # Powers, and what cannot be divided.
        *("2^10", "5x^2", "10²", "2**3", "1/0"),
        # Names.
        *("B2", "GPT-4", "COVID-19", "0x1F", "v1.0", "x2", "5km2"),
        # Thousands and millions, or units.
        *("$5k", "5M"),
        # Beyond all that is asked for.
        *("1e999", "9" * 500, "1×10^9999999999"),
        r"\boxed{x} is 5",
    ],
)
def test_what_is_not_plainly_one_number_is_unread(text: str) -> None:
    assert stated_number(text) is None


@first_cases(
    4,
    "piece",
    [
        *("1", "1,", "1 ", "-", "a", "1/1 ", r"\boxed{", r"\frac{1", " ", "minus ", "1 x ", "1e", "$ "),
        *("is 1 and ", "so ", "Some say the answer is 5. "),
    ],
)
def test_a_model_that_has_lost_itself_takes_no_longer_than_its_answer_is_long(piece: str) -> None:
    """Anything worse than linear would take minutes."""
    length = 1_000_000
    found = stated_number((piece * length)[:length] + ".\nSo it is 7")
    assert found is not None
    assert found.value == 7


def test_blank_lines_behind_named_values_are_passed_by_at_once() -> None:
    found = stated_number("x: 1\n2) 3\n" + "\n" * 200_000 + "So it is 7.")
    assert found is not None
    assert found.value == 7
