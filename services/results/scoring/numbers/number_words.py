"""Numbers in English words, for answers that have no digit: "forty-two" becomes 42."""

import re

_SMALL = (
    *(
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
    ),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_UNITS = {word: value for value, word in enumerate(_SMALL)}
_TENS = dict(
    zip(
        ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"),
        range(20, 100, 10),
        strict=True,
    )
)
_SCALES = {"thousand": 1000, "million": 10**6, "billion": 10**9}
_HUNDRED, _THOUSAND = 100, 1000
_WORD = "|".join((*_TENS, *sorted(_UNITS, key=len, reverse=True), "hundred", *_SCALES))
# Neither a part of "no-one", "two-thirds" and "twenty-first", nor of "two halves" and "five hundredths".
_PHRASE = re.compile(
    rf"(?<![\w-])(?:{_WORD})(?:(?:-|\s(?:and\s)?)(?:{_WORD}))*"
    r"(?![\w]|-\w|\s(?:hal[fv]|third|quarter|fourth|fifth|sixth|eighth|tenth|hundredth)|\s(?:dozen|score)s?\b)",
    re.IGNORECASE,
)
# No pronoun: "one or two", "one in four".
_ONE = re.compile(rf"\bone(?=\s(?:or|to|in|out\sof)\s(?:{_WORD})\b)", re.IGNORECASE)
_BETWEEN = re.compile(r"-|\s(?:and\s)?")
# Longer texts tell a story in which numbers occur.
_MAX_CHARACTERS = 400


def with_digits(text: str) -> str:
    """The text with its numbers in digits; "one" is a pronoun, and a word alone may be no number."""
    if len(text) > _MAX_CHARACTERS or text.strip(" .!*\n").isalpha():
        return text

    def in_digits(found: re.Match[str]) -> str:
        if found[0].casefold() == "one":
            return found[0]
        value = _value(_BETWEEN.split(found[0].casefold()))
        return found[0] if value is None else str(value)

    return _PHRASE.sub(in_digits, _ONE.sub("1", text))


def _value(words: list[str]) -> int | None:
    """None for what is no number: "twenty twenty", "five six", "two zero"."""
    if "zero" in words:
        return 0 if len(words) == 1 else None
    total = part = 0
    has_hundred = False
    # The next word must be of less than these.
    below, below_scale = _THOUSAND, max(_SCALES.values()) + 1
    for word in words:
        if word in _SCALES and part and _SCALES[word] < below_scale:
            total, part, has_hundred = total + part * _SCALES[word], 0, False
            below, below_scale = _THOUSAND, _SCALES[word]
        elif word == "hundred" and 0 < part < _HUNDRED and not has_hundred:
            part, below, has_hundred = part * _HUNDRED, _HUNDRED, True
        elif word in _TENS and below >= _HUNDRED:
            part, below = part + _TENS[word], 10
        elif word in _UNITS and below > _UNITS[word]:
            part, below = part + _UNITS[word], 1
        else:
            return None
    return total + part
