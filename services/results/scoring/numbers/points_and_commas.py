"""Numbers as Europe and South America write them: "1.250,50 €", "12,5 %", and "El total es 1.250 pesos".

A comma before one or two digits is a decimal one where a unit or another sign says that this is one number;
"3,5" alone may be two. A point before three digits parts groups where the sentence is in a language that does
so, and what is counted stands behind it; elsewhere it is a decimal point.
"""

import re

# These begin with their sign, so that they are searched fast.
COMMA = re.compile(r",(?<=\d,)\d(?!\d\d(?!\d))")
POINT = re.compile(r"\.(?<=\d\.)\d{3}(?!\d|[.,]\d)")
_GROUPS_AND_DECIMALS = re.compile(
    r"(?<![\d.,])\d{1,3}(?:(?:\.\d{3})+|(?:[ \u00a0\u2009\u202f]\d{3})+),\d{1,9}(?!\d|[.,]\d)"
)
_UNITS = (
    "[%€₽₺°]|(?:kg|g|mg|t|km|cm|mm|m|l|ml|h|min|s|euros?|eur|reais|pesos|zł|kr|kronor|kroner|kč|руб\\w*"
    "|lei|lira"
    "|tl|prozent|por ?cento|pour ?cent|per cento|procent)(?!\\w)"
)
_DECIMAL_OF_UNIT = re.compile(
    rf"(?:(?:R\$|€)\s?|(?<![\d.,(\[$]))(?P<whole>\d{{1,6}}),(?P<decimals>\d{{1,2}})(?!\d"
    rf"|[.,]\d)(?P<unit>\s?(?:{_UNITS}))?",
    re.IGNORECASE,
)
_OF_CURRENCY = ("R$", "€")
_COUNTED = re.compile(
    r"(?<![\d.,])(?P<number>[1-9]\d{0,2}\.\d{3})(?!\d|[.,]\d)(?=\s?€|\s(?P<noun>[^\W\d_]{2,}|[mgl]\b))"
)
# No noun that is counted.
_JOINS = frozenset(
    {
        "und",
        "oder",
        "con",
        "que",
        "por",
        "para",
        "mit",
        "bei",
        "als",
        "da",
        "die",
        "der",
        "das",
        "ist",
        "en",
        "es",
    }
    | {
        "is",
        "van",
        "per",
        "cada",
        "pro",
        "je",
        "por",
        "al",
        "del",
        "de",
        "ou",
        "of",
        "sowie",
        "mientras",
        "dan",
    }
)
_MAY_BE_GROUPED = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_ENGLISH = re.compile(
    r"\b(?:the|of|and|are|so|she|he|they|it|this|that|for|with|has|have|was|answer|we|to"
    r"|be)\b",
    re.IGNORECASE,
)
_GROUPING_BYPOINTS = re.compile(
    r"\b(?:el|la|los|las|del|un|una|es|son|de|por|en|cuesta|cuestan|hay|tiene|tienen|suma|resultado"
    r"|quedan|vendió"
    r"|der|die|das|ist|sind|ein|eine|kostet|kosten|beträgt|betragen|insgesamt|wurden|hat|haben|also"
    r"|ergibt|gesamt"
    r"|il|lo|gli|sono|è|di|totale|costa|costano|ha|hanno|risultato"
    r"|o|os|as|é|são|do|da|no|foram|custa|custam|tem|resultado"
    r"|het|een|van|totaal|zijn|kost|kosten|heeft|er"
    r"|toplam|tane|adet|eder|adalah|sebanyak|jumlah|totalnya)\b",
    re.IGNORECASE,
)
_FEWEST_WORDS = 2


def in_points(text: str) -> str:
    """The text with these numbers written with a decimal point and without signs between groups.

    Only a text in which COMMA or POINT is found has any.
    """
    if COMMA.search(text):
        text = _GROUPS_AND_DECIMALS.sub(_without_groups, text)
        text = _DECIMAL_OF_UNIT.sub(_with_point, text)
    if POINT.search(text) and groups_by_points(text):
        text = _COUNTED.sub(_counted, text)
    return text


def groups_by_points(text: str) -> bool:
    """Whether a text is in a language that sets points between groups of digits."""
    words = {word.casefold() for word in _GROUPING_BYPOINTS.findall(text)}
    return len(words) >= _FEWEST_WORDS and _ENGLISH.search(text) is None


def may_be_grouped(number: str) -> bool:
    return _MAY_BE_GROUPED.fullmatch(number) is not None


def _without_groups(found: re.Match[str]) -> str:
    whole, decimals = found[0].split(",")
    return "".join(filter(str.isdigit, whole)) + f".{decimals}"


def _with_point(found: re.Match[str]) -> str:
    is_one = found["unit"] or found[0].startswith(_OF_CURRENCY)
    return found[0].replace(",", ".").replace("R$", "$") if is_one else found[0]


def _counted(found: re.Match[str]) -> str:
    is_joined = (found["noun"] or "").casefold() in _JOINS
    return found[0] if is_joined else found[0].replace(".", "")
