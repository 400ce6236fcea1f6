"""Reads the one number that a short text states, exactly as it is written. What is not plainly one is unread.

It reads signs (also "minus 5"), decimals, commas between groups of digits (also of two, as in India; also
apostrophes, and spaces that do not break), exponents ("1e6", "3 × 10^5"), fractions ("3/4", "1 1/2", "½"),
a currency before or a unit behind ("$5", "9.8 m/s^2"), "hundred" up to "trillion", 万 and 亿, and a percent
sign. Of an equation it reads the side that is a number ("3 × 4 = 12").

It does not read "1,5", "70.000", "1.2.3", "5-7", "12:30", dates, powers ("2^10"), ordinals ("12th"), terms
with a variable or a root ("9π"), bounds ("x > 5"), tuples, two values ("3 or 4"), and digits that are part of
a name ("B2", "GPT-4", "0x1F") or follow one ("Room 101").
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

# Case matters: 5k and 5M are not 5 kelvin and 5 metres.
_UNIT = (
    r"(?:[kcmµμn]?m|[kmµμ]?g|mi|ft|yd|in|ms|s|min|h|hr|L|m[lL]|k?N|k?J|k?W|k?Pa|V|A|K|mol|Hz|units?|u"
    r"|inch(?:es)?|feet|met(?:er|re)s?)"
)
_RAISED = r"(?: \s{0,3}\^ [{(]? -?\d [)}]? )?"
# Of scripts that set words apart; × and π are signs to compute with.
_LETTER = r"A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0370-\u03bf\u03c1-\u052f\u1e9e\u212a\u212b"
# What is most frequent comes first, and only parts are without regard to case: a text has many tokens.
_TOKEN = re.compile(
    rf"""
    (?P<space> [^\S\n]+ )
  | (?P<number>
        (?P<digits>
            (?: \d+ (?:\ {{1,2}}(?i:and\ )?\d+/\d+)? | (?<![\d.])\.\d+ )
            (?: [.,:/'’_\u2013-]\d+ )* (?: [eE][-+]?\d+(?!\w) )?
        )
        (?: \s* (?:×|x|X|\*|·|⋅) \s* 10 \s* (?:\^|\*\*) \s* [{{(]? \s* (?P<power>[-+]?\d+) \s* [)}}]? )?
        (?P<degrees> \s?°\s?(?:[CcFf]\b)? )?
        (?P<percent> \s?% | \s(?i:per\s?cent(?:age\ points)?)\b )?
        (?: \s* (?P<scale> (?i:(?:hundred\s+)? (?:hundred|thousand|lakh|million|crore|billion|trillion) s?) )\b
          | \s? (?P<han>[万萬亿億]) )?
        (?P<unit> \s{{0,3}} {_UNIT} {_RAISED} (?: \s?[/·⋅]\s? {_UNIT} {_RAISED} )* (?![\w^(]) )?
        (?P<glued> [{_LETTER}] [^\W_\u0e00-\u0eff\u1100-\u11ff\u2e80-\uffff]* )?
    )
  | (?P<name> [{_LETTER}] (?: [A-Za-z]+(?![\w'\u2013-]) | [^\W\u0e00-\u0eff\u1100-\u11ff\u2e80-\uffff]*
        (?: (?:[-\u2013] | (?<=\d)\.) \d [\w.]* | '[^\W\d_]{{1,2}}\b )? ) )
  | (?P<operation> \*\* | [-+\u2013*/×·⋅÷^√∞πΠ] )
  | (?P<equals> [=≈≡] | := )
  | (?P<relation> [<>≤≥≠±∪∈] )
  | (?P<open> [(\[{{] ) | (?P<close> [)\]}}] )
  | (?P<currency> (?:US|A|C|R|NZ)?[$€£¥₹₩₽₺] )
  | (?P<break> [,;:.?\n。，；：？、⇒→∴] | \u2014 )
  | (?P<other> . )
    """,
    re.VERBOSE,
)
_PLAIN = re.compile(
    r"(?P<whole>\d{1,3}(?:[,'’_]\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}|\d*)(?:\.(?P<decimals>\d+))?(?:e(?P<power>[-+]?\d+))?",
    re.IGNORECASE,
)
_MIXED = re.compile(r"(\d+) {1,2}(?:and )?(\d+)/(\d+)", re.IGNORECASE)
# A tuple, a list or an interval; f(3, 4) is none.
_TUPLE = re.compile(r"(?<![\w])[(\[{]\s*([^\s,()\[\]{}]{1,20}(?:\s*,\s*[^\s,()\[\]{}]{1,20}){1,20})\s*[)\]}]")
_GROUPED = re.compile(r"\D?\d{1,3}(?:,\d{2,3})+(?:\.\d+)?\D?")
# Bounds, and words that make another number of it; before and behind the number.
_BOUND_BEFORE = re.compile(
    r"\b(?:(?:more|less|fewer|greater|larger|smaller|higher|lower)\s+than|over|under|at\s+least|at\s+most|up\s+to"
    r"|half(?:\s+of)?|twice|thrice|double|triple|square\s+root\s+of)\s+\S?\d",
    re.IGNORECASE,
)
_WORDS_OF_BOUNDS = (
    *("than", "over", "under", "least", "most", "up", "half", "twice", "thrice", "double", "triple", "root"),
    # Upper case that is no ASCII letter, and the same as one without regard to case.
    *("\u0130", "\u0131", "\u017f", "\u212a"),
)
# It begins with one character of a few, so that it is searched fast.
_CHANGED_BEHIND = re.compile(
    r"[\d$€£¥₹](?:(?<=\d)(?:\s+(?:dozens?|and\s+(?:a|one|three)\s+(?:half|quarters?|thirds?)|or\s+(?:more|less|fewer)"
    r"|squared|cubed|factorial|halves|thirds|quarters|fifths)\b|\s[kK]\b|[\u2080-\u2089])"
    r"|(?<!\d)\s?[\d.,]+\s?(?:k|m|b|bn|mn)\b)",
    re.IGNORECASE,
)
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
}
# "5k" and "5M" may be thousands and millions, or units.
_UNITS_OF_MANY = frozenset({"k", "K", "M", "B", "bn", "mn"})
_ORDINALS = frozenset({"st", "nd", "rd", "th"})
_FUNCTIONS = frozenset(
    {"log", "ln", "sin", "cos", "tan", "sqrt", "exp", "lg", "lim", "arctan", "arcsin", "mod"}
)
_SIGN_WORDS = frozenset({"minus", "negative"})
# The number behind these names a thing.
_NAMED_THINGS = (
    "article case chapter choice day eq equation example exercise fig figure grade item level line no note"
    " number option page part phase problem question room section step table version week"
)
_NAMED = frozenset({"#", *_NAMED_THINGS.split()})
_LONGEST_NAMED = max(map(len, _NAMED))
_NUMBER_BEFORE, _MARK = "0", "#"
# Larger numbers answer no question, and computing with them is slow.
_MAX_DIGITS, _MAX_POWER = 400, 400
_MAX_POWER_CHARACTERS = len("-400")
_MINUS = frozenset("-\u2013")
_SIGNS = frozenset({*_MINUS, "+", *_SIGN_WORDS})
# Sides of an equation that are no number.
_NAME, _EXPRESSION = "name", "expression"
_MAY_BE_LEFT_OUT = frozenset({"close", "operation"})
_JOINING = frozenset({"operation", "relation", "equals"})
_IN_RUN = _JOINING | {"number", "open", "close", "variable", "currency"}

# Not a part of "B2", "1.000.000", "4,5", "4/5", "5-2" or "80 %": which scale a task has is not known here.
_NUMBER = re.compile(
    r"(?<![\w.,/-])[-+]?(?:\d+(?:,\d{3})+(?:\.\d+)?|\d*\.\d+|\d+\.?)(?:[eE][-+]?\d+)?(?!\w|[.,]\d|\s*[/%])"
)
_DIGIT = re.compile(r"\d")
# Behind a number that is neither an ordinal nor goes on.
_PLAIN_END = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?=[.,;:!?)]?(?:\Z|\n|\ (?:[a-oq-wyzA-OQ-WYZ+=/-]|\*(?!\s?10))))")
_BEFORE_NUMBERS = frozenset("$=(\n")
_BARE = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,9})?")
# To the last word before a number that is neither computed with nor a sign.
_TO_LAST_WORD = re.compile(
    rf".*\s(?=(?!(?:{'|'.join(sorted(_FUNCTIONS | _SIGN_WORDS))})\b)[a-z]{{2,}}[\s,;:=(])",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)
# Tasks ask for smaller numbers, and a few larger ones would dominate a correlation.
_MAX_NUMBER = 1e15


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """`text` as written; `value` without regard to a percent sign."""

    text: str
    value: Fraction
    is_percent: bool = False


class _Token(NamedTuple):
    """A tuple, because a text has many."""

    kind: str
    match: re.Match[str]


_Run = list[_Token]


def bare_number(text: str) -> WrittenNumber | None:
    """What most targets and many answers are: digits and nothing else. None for all else, which is read."""
    if not _BARE.fullmatch(text) or _GROUPED_BY_POINT.fullmatch(text.removeprefix("-")):
        return None
    return WrittenNumber(text, Fraction(text))


def read_number(text: str) -> WrittenNumber | None:
    """The one number of a short text in one form; None where there is none, or more than one value."""
    found: WrittenNumber | None = None
    if not _DIGIT.search(text):
        return None
    if _is_not_itself(text):
        return None
    for run in _runs(text):
        for side in _values_of(run):
            if side is None or (found is not None and found.value != side.value):
                return None
            found = found or side
    return found


def _is_not_itself(text: str) -> bool:
    """A bound, a tuple, or a number with words that make another one of it."""
    if _CHANGED_BEHIND.search(text):
        return True
    folded = text.casefold()
    # Words are found in a text several times faster than patterns are.
    if any(word in folded for word in _WORDS_OF_BOUNDS) and _BOUND_BEFORE.search(text):
        return True
    may_be_tuple = "," in text and ("(" in text or "[" in text or "{" in text)
    return may_be_tuple and any(not _GROUPED.fullmatch(each[1]) for each in _TUPLE.finditer(text))


def has_number(text: str) -> bool:
    """Some number is written, also one that is unread; neither an ordinal nor the number of a room."""
    first = _DIGIT.search(text)
    if first is None:
        return False
    return _is_plainly_one(text, first.start()) or any(token.kind == "number" for token in _tokens(text))


def _is_plainly_one(text: str, start: int) -> bool:
    """Without a look at all tokens: "the total is 12 apples", with nothing but words before it."""
    if not _PLAIN_END.match(text, start):
        return False
    if start == 0 or text[start - 1] in _BEFORE_NUMBERS:
        return True
    word = text[max(0, start - _LONGEST_NAMED - 2) : start - 1].rpartition(" ")[2]
    return text[start - 1] == " " and word.isascii() and word.isalpha() and word.casefold() not in _NAMED


def _runs(text: str) -> Iterator[_Run]:
    """What stands together as one computation, such as `2x + 3 = 7`."""
    run: _Run = []
    is_apart = False
    for token in _tokens(text):
        if token.kind == "space":
            is_apart = True
            continue
        joins = token.kind in _JOINING or (bool(run) and run[-1].kind in _JOINING | {"currency"})
        if token.kind not in _IN_RUN or (is_apart and not joins):
            if run:
                yield run
            run = []
        if token.kind in _IN_RUN:
            run.append(token)
        is_apart = False
    if run:
        yield run


def _tokens(text: str) -> Iterator[_Token]:
    """A name that is computed with becomes `variable` or `operation`; the number of a thing is left out.

    Behind a name, words are passed by up to the last one before the next number, and all where there is none.
    """
    position: int | None = 0
    before = ""
    while position is not None:
        # The place of the next number, from `position` on.
        number = _DIGIT.search(text, position)
        if number is None:
            return
        words = _TO_LAST_WORD.match(text, position, number.start())
        start, position = words.end() if words else position, None
        for match in _TOKEN.finditer(text, start):
            kind = _kind(match, before)
            # "Room #12", "No. 12"
            if match[0] in "#№":
                before = _MARK
            elif kind != "space" and match[0] != ".":
                before = match[0].casefold() if kind == "name" else _NUMBER_BEFORE if kind == "number" else ""
            yield _Token(kind, match)
            if kind == "name" and match.start() > number.start():
                position = match.end()
                break


def _kind(match: re.Match[str], before: str) -> str:
    """`before` is the name before it, or whether a number or a mark of one is."""
    if match["number"]:
        is_ordinal = (match["glued"] or "").casefold() in _ORDINALS
        return "other" if before in _NAMED or is_ordinal else "number"
    folded = match[0].casefold()
    if match["name"] is None or (len(folded) > 1 and folded not in _FUNCTIONS | _SIGN_WORDS):
        return match.lastgroup or "other"
    is_operation = len(folded) > 1 or (folded == "x" and before == _NUMBER_BEFORE)
    return "operation" if is_operation else "variable"


def _values_of(run: _Run) -> Iterator[WrittenNumber | None]:
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
    kinds = [_side(side) for side in sides]
    plain = [kind for kind in kinds if isinstance(kind, WrittenNumber)]
    if plain and all(
        kind != _EXPRESSION or not _has_variable(side) for kind, side in zip(kinds, sides, strict=True)
    ):
        yield from plain
    else:
        yield None


def _sides(run: _Run) -> Iterator[_Run]:
    side: _Run = []
    for token in run:
        if token.kind == "equals":
            yield side
            side = []
        else:
            side.append(token)
    yield side


def _side(side: _Run) -> WrittenNumber | str:
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


def _unwrapped(side: _Run) -> _Run:
    """Without brackets around it all, brackets without a partner at its ends, and a dash behind it."""
    while side and side[-1].kind == "operation" and side[-1].match[0] in _MINUS:
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


def _unmatched(side: Sequence[_Token]) -> tuple[int, int]:
    """Numbers of opening and of closing brackets without a partner."""
    depth = closes = 0
    for token in side:
        if token.kind == "open":
            depth += 1
        elif token.kind == "close":
            depth, closes = (depth - 1, closes) if depth else (0, closes + 1)
    return depth, closes


def _is_function(side: _Run) -> bool:
    """As f(3)."""
    return [token.kind for token in side[:2]] == ["variable", "open"] and side[-1].kind == "close"


def _has_variable(side: _Run) -> bool:
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
    if len(parts) > 2:
        return None
    values = [_value(part) for part in parts]
    if any(value is None for value in values):
        return None
    top, *below = [value for value in values if value is not None]
    if not below:
        return top
    return top / below[0] if below[0] else None


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
    if len(found) != 1 or _DIGIT.search(_NUMBER.sub("", text)):
        return None
    number = found.pop()
    return number if abs(number) <= _MAX_NUMBER else None
