"""Words and signs beside a number that make another one of it, or none: bounds, tuples, times, "12 dozen"."""

import re

from services.results.scoring.answer_words import has_one_of

# A tuple, a list or an interval; f(3, 4) is none.
_TUPLE = re.compile(r"(?<![\w])[(\[{]\s*([^\s,()\[\]{}]{1,20}(?:\s*,\s*[^\s,()\[\]{}]{1,20}){1,20})\s*[)\]}]")
_RATIO = re.compile(r"(?:\A|\b(?:is|of|are) |= ?)\W{0,3}\d+ : \d")
_GROUPED = re.compile(r"\D?\d{1,3}(?:,\d{2,3})+(?:\.\d+)?\D?")
# Bounds, and words that make another number of it; before and behind the number.
_BOUND_BEFORE = re.compile(
    r"\b(?:(?:more|less|fewer|greater|larger|smaller|higher|lower)\s+than|over|under|at\s+least"
    r"|at\s+most|up\s+to"
    r"|half(?:\s+of)?|twice|thrice|double|triple|(?:square|cube|root|factorial|reciprocal)\s+of)\s+\S?\d",
    re.IGNORECASE,
)
_BOUND_IN_HAN = re.compile(
    r"(?:至少|最少|最多|超过|超過|不到|不足|多于|少于|大于|小于)\s?\S?\d"
    r"|\d[\d.,]*\s?\w{0,2}\s?(?:以上|以下|未満|未满|이상|이하|미만|초과)"
)
# An ordinal, and a time of the day.
_NO_COUNT_IN_HAN = re.compile(
    r"\W*(?:(?:午前|午後|上午|下午|早上|晚上|오전|오후)\s?\d+\s?(?:時|点钟?|點鐘?|시)|第\s?\d+\w?"
    r"|\d+\s?(?:番目|時|点钟|點鐘|시|번째))(?:です|だ|입니다)?\W*"
)
# 3.14… is no decimal number; three points may only be a pause.
_ENDLESS = re.compile(r"\d\.\d+\s?…")
# A last quote without a partner: 12" is a length.
_INCHES = re.compile(r"""\A(?:[^"]*\d"|[^']*\d')[ .]*\Z""")
_BOUND_ABROAD = re.compile(
    r"\b(?:au moins|au plus|plus de|moins de|al menos|por lo menos|como máximo|más de|menos de"
    r"|almeno|al massimo|più di|meno di|pelo menos|no máximo|no mínimo|mais de|mindestens|höchstens"
    r"|mehr als"
    r"|weniger als|minstens|hoogstens|meer dan"
    r"|minder dan|не менее|не более|более|менее|en az|en fazla)\s\S?\d",
    re.IGNORECASE,
)
_WORDS_OF_BOUNDS_ABROAD = (
    *("au ", "plus", "moins", "menos", "máximo", "más", "almeno", "massimo", "più", "meno", "mínimo", "mais"),
    *(
        "destens",
        "höchstens",
        " als ",
        "minstens",
        "hoogstens",
        " dan ",
        "более",
        "менее",
        "en az",
        "en fazla",
    ),
)
_WORDS_OF_BOUNDS = (
    *("than", "over", "under", "least", "most", "up"),
    *("half", "twice", "thrice", "double", "triple", "root", "square", "cube", "factorial", "reciprocal"),
)
# It begins with one character of a few, so that it is searched fast.
_CHANGED_BEHIND = re.compile(
    r"[\d$€£¥₹](?:(?<=\d)(?:-digit\b|-?ish\b|,-(?!\d)|\s?o'?clock\b|\s+(?:dozens?|and\s+(?:a|one"
    r"|three)\s+(?:half|quarters?"
    r"|thirds?)|or\s+(?:more|less|fewer)"
    r"|squared|cubed|factorial|digits?|(?:hundred|thousand|million)s?\s+(?:and\s+)?"
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty|\d+)|halves|thirds"
    r"|quarters|fifths)\b|\s(?:[kK]|bn|mn)\b|[\u2080-\u2089])"
    r"|(?<=\d)\s?(?<![2-9]\d)(?<![2-9]\d\s)(?<!\d\d\d)(?<!\d\d\d\s)[ap]\.?m\b"
    r"|(?<!\d)\s?[\d.,]+\s?(?:k|m|b|bn|mn)\b)",
    re.IGNORECASE,
)
_BELOW_ZERO = re.compile(r"\d ?(?:°[CF]?|degrees?(?: \w+)?|[CF])? below (?:zero|freezing)", re.IGNORECASE)
_BOUND_BEHIND = re.compile(r"\d (?:[a-z]+ )?at (?:the )?(?:least|most)\b(?! \S?\d)", re.IGNORECASE)
# "in her late 60s", "the 1990s"
_DECADE = re.compile(
    r"\b(?:the|early|mid|late|his|her|their|my|its)[ -]+\d{0,2}[1-9]?0'?s\b|\b(?:1\d|20)\d0'?s\b",
    re.IGNORECASE,
)
# So is 1.200 of a currency whose countries group by points.
_POINT_OF_CURRENCY = re.compile(
    r"(?:[€₫₺]|R\$|\bRp)\s?\d{1,3}\.\d{3}(?![\d.])|(?<![\d.,])\d{1,3}\.\d{3}\s?(?:€|₫|₺|euros?\b"
    r"|eur\b|reais\b)",
    re.IGNORECASE,
)
_OF_CURRENCIES = ("€", "₫", "₺", "r$", "rp", "eur", "reais")


def makes_another_number(text: str) -> bool:
    """A bound, a tuple, or a number with words that make another one of it."""
    if _CHANGED_BEHIND.search(text) or ("0s" in text and _DECADE.search(text)):
        return True
    folded = text.casefold()
    if "." in text and has_one_of(folded, _OF_CURRENCIES) and _POINT_OF_CURRENCY.search(text):
        return True
    if has_one_of(folded, _WORDS_OF_BOUNDS) and (_BOUND_BEFORE.search(text) or _BOUND_BEHIND.search(text)):
        return True
    if not text.isascii() and (
        _BOUND_IN_HAN.search(text) or _NO_COUNT_IN_HAN.fullmatch(text) or _ENDLESS.search(text)
    ):
        return True
    if " below " in folded and _BELOW_ZERO.search(text):
        return True
    if ("'" in text or '"' in text) and _INCHES.search(text):
        return True
    if has_one_of(folded, _WORDS_OF_BOUNDS_ABROAD) and _BOUND_ABROAD.search(text):
        return True
    if ":" in text and _RATIO.search(text):
        return True
    may_be_tuple = "," in text and ("(" in text or "[" in text or "{" in text)
    return may_be_tuple and any(not _GROUPED.fullmatch(each[1]) for each in _TUPLE.finditer(text))
