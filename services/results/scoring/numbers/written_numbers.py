"""Reads the one number that a short text states, exactly as it is written. What is not plainly one is unread.

It reads signs (also "minus 5"), decimals, commas between groups of digits (also of two, as in India; also
apostrophes, and spaces that do not break), exponents ("1e6", "3 × 10^5"), fractions ("3/4", "1 1/2", "½"),
a currency before or a unit behind ("$5", "9.8 m/s^2"), "hundred" up to "trillion", 万, 亿, 만 and 억, and a
percent sign. Of an equation it reads the side that is a number ("3 × 4 = 12").

It does not read "1,5", "70.000", "1.2.3", "5-7", "12:30", dates, powers ("2^10"), ordinals ("12th"), terms
with a variable or a root ("9π"), bounds ("x > 5"), tuples, two values ("3 or 4"), and digits that are part of
a name ("B2", "GPT-4", "0x1F") or follow one ("Room 101").
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from services.results.scoring.numbers.changed_numbers import makes_another_number
from services.results.scoring.numbers.number_tokens import DIGIT, SIGN_WORDS, Run, Token, runs

_PLAIN = re.compile(
    r"(?P<whole>(?!0)\d{1,3}(?:[,'’_]\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}"
    r"|\d*)(?:\.(?P<decimals>\d+))?(?:e(?P<power>[-+]?\d+))?",
    re.IGNORECASE,
)
_MIXED = re.compile(r"(\d+) {1,2}(?:and )?(\d+)/(\d+)", re.IGNORECASE)
# 70.000 is seventy, or seventy thousand.
_GROUPED_BY_POINT = re.compile(r"\d{1,3}\.000")
_SCALES = {
    "hundred": 2,
    "thousand": 3,
    "lakh": 5,
    "crore": 7,
    "million": 6,
    "billion": 9,
    "trillion": 12,
    "万": 4,
    "萬": 4,
    "亿": 8,
    "億": 8,
    "만": 4,
    "억": 8,
}
# "5k" and "5M" may be thousands and millions, or units.
_UNITS_OF_MANY = frozenset({"k", "K", "M", "B", "bn", "mn"})
# Larger numbers answer no question, and computing with them is slow.
_MAX_DIGITS, _MAX_POWER = 400, 400
_PER_CENT = 100
_MAX_POWER_CHARACTERS = len("-400")
_MINUS = frozenset("-\u2013")
_SIGNS = frozenset({*_MINUS, "+", *SIGN_WORDS})
_UNIT_BEHIND = re.compile(r" ?[^\W\d_]{2,}")
# Sides of an equation that are no number.
_NAME, _EXPRESSION = "name", "expression"
_MAY_BE_LEFT_OUT = frozenset({"close", "operation"})

# Not a part of "B2", "1.000.000", "4,5", "4/5", "5-2" or "80 %": which scale a task has is not known here.
_NUMBER = re.compile(
    r"(?<![\w.,/-])[-+]?(?:\d+(?:,\d{3})+(?:\.\d+)?|\d*\.\d+|\d+\.?)(?:[eE][-+]?\d+)?(?!\w|[.,]\d|\s*[/%])"
)
_BARE = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,9})?")
# As most short answers are written: "The answer is $1,250."
_PLAINLY_SAID = re.compile(
    r"(?:(?:so |thus,? |therefore,? |hence,? )?(?:the )?(?:final |correct )?answer(?: is|:) ?)?"
    r"\$?(?P<number>(?:0|[1-9]\d{0,14}|[1-9]\d{0,2}(?:,\d{3})+)(?:\.\d{1,9})?)\.?",
    re.IGNORECASE | re.ASCII,
)
# Tasks ask for smaller numbers, and a few larger ones would dominate a correlation.
_MAX_NUMBER = 1e15
_FEW_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """`text` as written; `value` without regard to a percent sign."""

    text: str
    value: Fraction
    is_percent: bool = False


def bare_number(text: str) -> WrittenNumber | None:
    """What most targets and many answers are: digits and nothing else. None for all else, which is read."""
    if not _BARE.fullmatch(text) or _GROUPED_BY_POINT.fullmatch(text.removeprefix("-")):
        return None
    return WrittenNumber(text, Fraction(int(text) if "." not in text else text))


def plainly_said(text: str) -> WrittenNumber | None:
    """What reading in full would give for the most frequent short answers. None for all else."""
    said = _PLAINLY_SAID.fullmatch(text) if len(text) <= _FEW_CHARACTERS else None
    if said is None or _GROUPED_BY_POINT.fullmatch(said["number"]):
        return None
    plain = said["number"].replace(",", "")
    return WrittenNumber(said["number"], Fraction(int(plain) if "." not in plain else plain))


def read_number(text: str) -> WrittenNumber | None:
    """The one number of a short text in one form; None where there is none, or more than one value."""
    found = bare_number(text) if len(text) < _FEW_CHARACTERS else None
    if found is not None or not DIGIT.search(text):
        return found
    if makes_another_number(text):
        return None
    for run in runs(text):
        for side in _values_of(run):
            if side is None or (found is not None and not _is_same(found, side)):
                return None
            # "1/4 or 25%": with its sign it says of what it is.
            found = side if found is None or side.is_percent else found
    return found


def _is_same(one: WrittenNumber, other: WrittenNumber) -> bool:
    if one.value == other.value:
        return True
    share, percent = (one, other) if other.is_percent else (other, one)
    return percent.is_percent and not share.is_percent and share.value * _PER_CENT == percent.value


def _is_rounded(exact: WrittenNumber, rounded: WrittenNumber) -> bool:
    decimals = len(rounded.text.partition(".")[2])
    return abs(exact.value - rounded.value) * 2 <= Fraction(1, 10**decimals)


def _values_of(run: Run) -> Iterator[WrittenNumber | None]:
    """The values of a computation; None for what is not plainly a number."""
    kinds = {token.kind for token in run}
    if "number" not in kinds:
        return
    if len(run) == 1:
        yield _number(run[0].match)
        return
    if "relation" in kinds:
        yield None
        return
    if "equals" not in kinds:
        value = _side(run)
        yield value if isinstance(value, WrittenNumber) else None
        return
    sides = list(_sides(run))
    values = [_side(side) for side in sides]
    plain = [value for value in values if isinstance(value, WrittenNumber)]
    if len(plain) == len(sides) == 2 and _is_rounded(*plain) and any(token.match[0] == "≈" for token in run):
        # "1/6 ≈ 0.167"
        plain, values = plain[:1], values[:1]
        sides = sides[:1]
    if len(sides) > 2 and values[0] == _NAME and plain == values[-1:]:
        # A formula between what is asked and its value: "area = πr² = 28.27".
        yield from plain
    elif plain and all(
        value != _EXPRESSION or not _has_variable(side) for value, side in zip(values, sides, strict=True)
    ):
        yield from plain
    else:
        yield None


def _sides(run: Run) -> Iterator[Run]:
    side: Run = []
    for token in run:
        if token.kind == "equals":
            yield side
            side = []
        else:
            side.append(token)
    yield side


def _side(side: Run) -> WrittenNumber | str:
    side = [token for token in side if token.kind != "currency"]
    if side and (side[0].kind == "open" or side[-1].kind in _MAY_BE_LEFT_OUT):
        side = _unwrapped(side)
    kinds = [token.kind for token in side]
    if "number" not in kinds or _is_function(side):
        return _NAME
    if len(side) == 1:
        return _number(side[0].match) or _EXPRESSION
    sign = side[0].match[0]
    if kinds == ["operation", "number"] and sign.casefold() in _SIGNS:
        between = side[0].match.string[side[0].match.end() : side[1].match.start()]
        # A minus with a space behind it may be a dash.
        is_dash = between.isspace() and not sign.isalpha()
        number = None if is_dash else _number(side[1].match)
        if number is not None:
            value = number.value if sign == "+" else -number.value
            return WrittenNumber(sign + between + number.text, value, number.is_percent)
    return _EXPRESSION


def _unwrapped(side: Run) -> Run:
    """Without brackets around it all, brackets without a partner at its ends, and a dash behind it."""
    while side and side[-1].kind == "operation" and _is_left_out(side[-1].match):
        side = side[:-1]
    while side:
        opens, closes = _unmatched(side)
        if closes and side[-1].kind == "close":
            side = side[:-1]
        elif (opens and side[0].kind == "open") or (
            side[0].kind == "open" and side[-1].kind == "close" and not any(_unmatched(side[1:-1]))
        ):
            side = side[1:] if opens else side[1:-1]
        else:
            break
    return side


def _is_left_out(sign: re.Match[str]) -> bool:
    """A dash, and the sign of "$5/hour"."""
    return sign[0] in _MINUS or (sign[0] == "/" and _UNIT_BEHIND.match(sign.string, sign.end()) is not None)


def _unmatched(side: Sequence[Token]) -> tuple[int, int]:
    """Numbers of opening and of closing brackets without a partner."""
    depth = closes = 0
    for token in side:
        if token.kind == "open":
            depth += 1
        elif token.kind == "close":
            depth, closes = (depth - 1, closes) if depth else (0, closes + 1)
    return depth, closes


def _is_function(side: Run) -> bool:
    """As f(3)."""
    return [token.kind for token in side[:2]] == ["variable", "open"] and side[-1].kind == "close"


def _has_variable(side: Run) -> bool:
    return any(
        token.kind == "variable" or (token.kind == "number" and token.match["glued"]) for token in side
    )


def _number(found: re.Match[str]) -> WrittenNumber | None:
    if found[0].isdecimal() and len(found[0]) <= _MAX_DIGITS:
        return WrittenNumber(found[0], Fraction(int(found[0])))
    glued = found["glued"] or ""
    if glued in _UNITS_OF_MANY or (glued and (len(glued) == 1 or not glued.isalpha())):
        return None
    mixed = _MIXED.fullmatch(found["digits"])
    value = _mixed(mixed) if mixed else _quotient(found["digits"])
    # Length first: a power of a thousand digits is slow to read already.
    if value is None or len(found["power"] or "") > _MAX_POWER_CHARACTERS:
        return None
    power = int(found["power"] or 0)
    if abs(power) > _MAX_POWER:
        return None
    scales = (found["scale"] or found["han"] or "").casefold().split()
    power += sum(_SCALES[scale.removesuffix("s")] for scale in scales)
    text = found[0].strip()
    unit = found["unit"] or found["glued"]
    text = text.removesuffix(unit).strip() if unit else text
    if power:
        value *= Fraction(10) ** power
    return WrittenNumber(text, value, found["percent"] is not None)


def _mixed(found: re.Match[str]) -> Fraction | None:
    part = _quotient(f"{found[2]}/{found[3]}")
    whole = _value(found[1])
    return whole + part if whole is not None and part is not None and part < 1 else None


def _quotient(digits: str) -> Fraction | None:
    if "/" not in digits:
        return _value(digits)
    parts = digits.split("/")
    if len(parts) > 2 or _is_season(*parts):
        return None
    values = [_value(part) for part in parts]
    if any(value is None for value in values):
        return None
    top, *below = [value for value in values if value is not None]
    if not below:
        return top
    return top / below[0] if below[0] else None


def _is_season(year: str, next_year: str) -> bool:
    """As 2023/24."""
    return len(year) == 4 and len(next_year) == 2 and year.isdecimal() and next_year == f"{int(year) + 1}"[2:]


def _value(digits: str) -> Fraction | None:
    if len(digits) > _MAX_DIGITS or _GROUPED_BY_POINT.fullmatch(digits):
        return None
    if digits.isdecimal():
        return Fraction(int(digits))
    plain = _PLAIN.fullmatch(digits)
    if plain is None or len(plain["power"] or "") > _MAX_POWER_CHARACTERS:
        return None
    whole, decimals = re.sub("[,'’_]", "", plain["whole"]), plain["decimals"] or ""
    if not whole and not decimals:
        return None
    power = int(plain["power"] or 0)
    if abs(power) > _MAX_POWER:
        return None
    value, scale = Fraction(int(whole + decimals)), power - len(decimals)
    return value * Fraction(10) ** scale if scale else value


def named_number(text: str) -> float | None:
    """None where the text names no number, or more than one: which of them is meant is not guessed."""
    text = text.replace("\u2212", "-")
    found = {float(number.replace(",", "")) for number in _NUMBER.findall(text)}
    if len(found) != 1 or DIGIT.search(_NUMBER.sub("", text)):
        return None
    number = found.pop()
    return number if abs(number) <= _MAX_NUMBER else None
