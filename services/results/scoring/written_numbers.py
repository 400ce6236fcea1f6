"""Reads numbers in answers exactly as they are written. What is not plainly one number is unread.

It reads signs (also "minus 5"), decimals, commas between groups of three digits (also apostrophes, and spaces
that do not break), exponents ("1e6", "3 × 10^5"), fractions ("3/4", "1 1/2", "½", \\frac{3}{4}), a currency
before or a unit behind ("$5", "5 km"), "thousand" up to "trillion", and a percent sign.

It does not read "1,5", "1.2.3", "5-7", "12:30", dates, powers ("2^10"), and digits that are part of a name
("B2", "GPT-4", "0x1F").
"""

import re
import unicodedata
from collections import deque
from dataclasses import dataclass, replace
from fractions import Fraction

from services.results.scoring.answer_text import BOXED

_VULGAR_FRACTION = re.compile("[\u00bc-\u00be\u2150-\u215e]")
_RAISED = re.compile("[\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u207a\u207b]+")
_LATEX_FRACTION = re.compile(r"(-?)\s?\\[dt]?frac\s*\{\s*([\d.,]+)\s*\}\s*\{\s*([\d.,]+)\s*\}")
_NO_BREAK = re.compile(r"(?<=\d)(?:[\u00a0\u2009\u202f]|\\,|\{,\})(?=\d{3}(?!\d))")
_LATEX_SIGNS = re.compile(r"\\([%$])|\\(?:text|mathrm)\s*(?=\{)")

_TOKEN = re.compile(
    r"""
    (?P<sign> (?<![\w)\]}%.,/:^*-]) [-+\u2013] | (?<!\w) (?:minus|negative)\s+ )?
    (?P<currency> \s?[$€£¥₹] \s?)?
    (?P<digits> (?:\d+ | (?<!\d)\.\d+) (?:[.,:/'’_\u2013-]\d+)* (?:e[-+]?\d+)? )
    (?:\s* (?:×|x|\*|·|⋅|\\times|\\cdot) \s* 10 \s* (?:\^|\*\*) \s* [{(]? \s* (?P<power>[-+]?\d+) \s* [)}]? )?
    (?P<unit> [^\W\d_]* )
    (?P<more> [^\W_] | \s?\^ | \*\*[\d({-] )?
    (?P<percent> \s?% | \s per\s?cent\b )?
    (?: \s+ (?P<scale>thousand|million|billion|trillion)\b )?
  | (?P<name> [^\W\d_] \w* (?: (?:[-\u2013] | (?<=\d)\.) \d [\w.]* )? )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_PLAIN = re.compile(
    r"(?P<whole>\d{1,3}(?:[,'’_]\d{3})+|\d*)(?:\.(?P<decimals>\d+))?(?:e(?P<power>[-+]?\d+))?", re.IGNORECASE
)
_RAISES = re.compile(r"(?:\^|\w\*\*)[{(]?\Z")
_BETWEEN_MIXED = re.compile(r" (?:and )?")
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
# "5k" and "5M" may be thousands and millions, or units.
_UNITS_OF_MANY = frozenset({"k", "K", "M", "B", "bn", "mn"})
# Larger numbers answer no question, and computing with them is slow.
_MAX_DIGITS, _MAX_POWER = 400, 400
_MAX_POWER_CHARACTERS = len("-400")

# Not a part of "B2", "1.000.000", "4,5", "4/5", "5-2" or "80 %": which scale a task has is not known here.
_NUMBER = re.compile(
    r"(?<![\w.,/-])[-+]?(?:\d+(?:,\d{3})+(?:\.\d+)?|\d*\.\d+|\d+\.?)(?:[eE][-+]?\d+)?(?!\w|[.,]\d|\s*[/%])"
)
_DIGIT = re.compile(r"\d")
# Tasks ask for smaller numbers, and a few larger ones would dominate a correlation.
_MAX_NUMBER = 1e15


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """`text` as written; `value` without regard to a percent sign."""

    text: str
    value: Fraction
    is_percent: bool = False


def last_number(text: str) -> WrittenNumber | None:
    """The last number of the last box, or of the whole text without one; None if it is not plain."""
    boxed = [found[1] for found in BOXED.finditer(text)]
    tokens = (
        token for token in _TOKEN.finditer(_in_one_form(boxed[-1] if boxed else text)) if token["digits"]
    )
    found = deque((token for token in tokens if token["digits"]), maxlen=2)
    if not found:
        return None
    before, last = found[0], found[-1]
    number = _number(last)
    are_beside = before is not last and _BETWEEN_MIXED.fullmatch(last.string, before.end(), last.start())
    return _beside(before, last, number) if number and are_beside else number


def _in_one_form(text: str) -> str:
    text = text.replace("\u2212", "-")
    text = _VULGAR_FRACTION.sub(lambda one: " " + _decomposed(one[0]).replace("\u2044", "/"), text)
    text = _RAISED.sub(lambda run: "^" + _decomposed(run[0]).replace("\u2212", "-"), text)
    text = _LATEX_SIGNS.sub(lambda sign: sign[1] or " ", text)
    text = _LATEX_FRACTION.sub(r" \1\2/\3 ", text)
    return _NO_BREAK.sub(",", text)


def _decomposed(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _number(found: re.Match[str]) -> WrittenNumber | None:
    parts = found["digits"].split("/")
    values = [_value(part) for part in parts[:2]]
    # Length first: a power of a thousand digits is slow to read already.
    power = int(found["power"] or 0) if len(found["power"] or "") <= _MAX_POWER_CHARACTERS else _MAX_POWER + 1
    if found["more"] or found["unit"] in _UNITS_OF_MANY or _is_power(found):
        return None
    if None in values or len(parts) > 2 or abs(power) > _MAX_POWER:
        return None
    top, bottom = [value for value in (*values, Fraction(1)) if value is not None][:2]
    if not bottom:
        return None
    power += _SCALES.get((found["scale"] or "").lower(), 0)
    value = top / bottom * Fraction(10) ** power
    is_negative = bool(found["sign"]) and found["sign"] != "+"
    return WrittenNumber(found[0].strip(), -value if is_negative else value, found["percent"] is not None)


def _is_power(found: re.Match[str]) -> bool:
    """The number is an exponent."""
    return bool(_RAISES.search(found.string, max(0, found.start() - 4), found.start()))


def _value(digits: str) -> Fraction | None:
    plain = _PLAIN.fullmatch(digits)
    if plain is None or len(digits) > _MAX_DIGITS or len(plain["power"] or "") > _MAX_POWER_CHARACTERS:
        return None
    whole, decimals = re.sub("[,'’_]", "", plain["whole"]), plain["decimals"] or ""
    if not whole and not decimals:
        return None
    power = int(plain["power"] or 0)
    if abs(power) > _MAX_POWER:
        return None
    return int(whole + decimals) * Fraction(10) ** (power - len(decimals))


def _beside(before: re.Match[str], last: re.Match[str], part: WrittenNumber) -> WrittenNumber | None:
    """A whole number and a fraction below 1 are one number; so may be groups of three digits: "1 000"."""
    if not before["digits"].isdecimal() or any(before[name] for name in ("unit", "more", "percent", "power")):
        return part
    # "1 000" may be one number or two: unread.
    if len(last["digits"]) == len("000") and last["digits"].isdecimal():
        return None
    whole = _number(before)
    if whole is None or "/" not in last["digits"] or not 0 <= part.value < 1:
        return part
    value = whole.value - part.value if before["sign"] else whole.value + part.value
    return replace(part, text=f"{whole.text} {part.text}", value=value)


def named_number(text: str) -> float | None:
    """None where the text names no number, or more than one: which of them is meant is not guessed."""
    text = text.replace("\u2212", "-")
    found = {float(number.replace(",", "")) for number in _NUMBER.findall(text)}
    if len(found) != 1 or _DIGIT.search(_NUMBER.sub("", text)):
        return None
    number = found.pop()
    return number if abs(number) <= _MAX_NUMBER else None
