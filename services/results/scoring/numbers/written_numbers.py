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

# Case matters: 5k and 5M are not 5 kelvin and 5 metres.
_UNIT = (
    r"(?-i:[kcmµμn]?m|[kmµμ]?g|mi|ft|yd|in|ms|s|min|h|hr|L|m[lL]|k?N|k?J|k?W|k?Pa|V|A|K|mol|Hz|units?|u"
    r"|inch(?:es)?|feet|met(?:er|re)s?)"
)
_RAISED = r"(?: \s{0,3}\^ [{(]? -?\d [)}]? )?"
# Of scripts that set words apart; × and π are signs to compute with.
_LETTER = r"A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0370-\u03bf\u03c1-\u052f"
_TOKEN = re.compile(
    rf"""
    (?P<number>
        (?P<digits>
            (?: \d+ (?:\ {{1,2}}(?:and\ )?\d+/\d+)? | (?<![\d.])\.\d+ )
            (?: [.,:/'’_\u2013-]\d+ )* (?: e[-+]?\d+(?!\w) )?
        )
        (?: \s* (?:×|x|\*|·|⋅) \s* 10 \s* (?:\^|\*\*) \s* [{{(]? \s* (?P<power>[-+]?\d+) \s* [)}}]? )?
        (?P<degrees> \s?°\s?(?:[CF]\b)? )?
        (?P<percent> \s?% | \s per\s?cent(?:age\ points)?\b )?
        (?: \s* (?P<scale> (?:hundred\s+)? (?:hundred|thousand|lakh|million|crore|billion|trillion) s? )\b
          | \s? (?P<han>[万萬亿億]) )?
        (?P<unit> \s{{0,3}} {_UNIT} {_RAISED} (?: \s?[/·⋅]\s? {_UNIT} {_RAISED} )* (?![\w^(]) )?
        (?P<glued> [{_LETTER}] [^\W_\u0e00-\u0eff\u1100-\u11ff\u2e80-\uffff]* )?
    )
  | (?P<operation> \*\* | [-+\u2013*/×·⋅÷^√∞π] )
  | (?P<name> [{_LETTER}] [^\W\u0e00-\u0eff\u1100-\u11ff\u2e80-\uffff]*
        (?: (?:[-\u2013] | (?<=\d)\.) \d [\w.]* | '[^\W\d_]{{1,2}}\b )? )
  | (?P<equals> [=≈≡] | := )
  | (?P<relation> [<>≤≥≠±∪∈] )
  | (?P<open> [(\[{{] ) | (?P<close> [)\]}}] )
  | (?P<currency> (?:US|A|C|R|NZ)?[$€£¥₹₩₽₺] )
  | (?P<break> [,;:.?\n。，；：？、⇒→∴] | \u2014 )
  | (?P<space> [^\S\n]+ )
  | (?P<other> . )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_PLAIN = re.compile(
    r"(?P<whole>\d{1,3}(?:[,'’_]\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}|\d*)(?:\.(?P<decimals>\d+))?(?:e(?P<power>[-+]?\d+))?",
    re.IGNORECASE,
)
_MIXED = re.compile(r"(\d+) {1,2}(?:and )?(\d+)/(\d+)", re.IGNORECASE)
# A tuple, a list or an interval; f(3, 4) is none.
_TUPLE = re.compile(r"(?<![\w])[(\[{]\s*([^\s,()\[\]{}]{1,20}(?:\s*,\s*[^\s,()\[\]{}]{1,20}){1,20})\s*[)\]}]")
_GROUPED = re.compile(r"\D?\d{1,3}(?:,\d{2,3})+(?:\.\d+)?\D?")
# Bounds, and words that make another number of it.
_NOT_ITSELF = re.compile(
    r"\b(?:(?:more|less|fewer|greater|larger|smaller|higher|lower)\s+than|over|under|at\s+least|at\s+most|up\s+to"
    r"|half(?:\s+of)?|twice|thrice|double|triple|square\s+root\s+of)\s+\S?\d"
    r"|\d\s+(?:dozens?|and\s+(?:a|one|three)\s+(?:half|quarters?|thirds?)|or\s+(?:more|less|fewer)|squared|cubed"
    r"|factorial|halves|thirds|quarters|fifths)\b"
    r"|[$€£¥₹]\s?[\d.,]+\s?(?:k|m|b|bn|mn)\b|\d\s[kK]\b|\d[\u2080-\u2089]",
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
_NUMBER_BEFORE, _MARK = "0", "#"
# Larger numbers answer no question, and computing with them is slow.
_MAX_DIGITS, _MAX_POWER = 400, 400
_MAX_POWER_CHARACTERS = len("-400")
_MINUS = frozenset("-\u2013")
_SIGNS = frozenset({*_MINUS, "+", *_SIGN_WORDS})
# Sides of an equation that are no number.
_NAME, _EXPRESSION = "name", "expression"
_JOINING = frozenset({"operation", "relation", "equals"})
_IN_RUN = _JOINING | {"number", "open", "close", "variable", "currency"}

# Not a part of "B2", "1.000.000", "4,5", "4/5", "5-2" or "80 %": which scale a task has is not known here.
_NUMBER = re.compile(
    r"(?<![\w.,/-])[-+]?(?:\d+(?:,\d{3})+(?:\.\d+)?|\d*\.\d+|\d+\.?)(?:[eE][-+]?\d+)?(?!\w|[.,]\d|\s*[/%])"
)
_DIGIT = re.compile(r"\d")
_BARE = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,9})?")
# Tasks ask for smaller numbers, and a few larger ones would dominate a correlation.
_MAX_NUMBER = 1e15


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """`text` as written; `value` without regard to a percent sign."""

    text: str
    value: Fraction
    is_percent: bool = False


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    match: re.Match[str]

    @property
    def text(self) -> str:
        return self.match[0]


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
    if _NOT_ITSELF.search(text) or any(not _GROUPED.fullmatch(each[1]) for each in _TUPLE.finditer(text)):
        return None
    for run in _runs(text):
        for side in _values_of(run):
            if side is None or (found is not None and found.value != side.value):
                return None
            found = found or side
    return found


def has_number(text: str) -> bool:
    """Some number is written, also one that is unread; neither an ordinal nor the number of a room."""
    return _DIGIT.search(text) is not None and any(token.kind == "number" for token in _tokens(text))


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
    """A name that is computed with becomes `variable` or `operation`; the number of a thing is left out."""
    before = ""
    for match in _TOKEN.finditer(text):
        kind = _kind(match, before)
        # "Room #12", "No. 12"
        if kind != "space" and match[0] not in "#№.":
            before = {"name": match[0].casefold(), "number": _NUMBER_BEFORE}.get(kind, "")
        elif match[0] in "#№":
            before = _MARK
        yield _Token(kind, match)


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
    if not any(token.kind == "number" for token in run):
        return
    if any(token.kind == "relation" for token in run):
        yield None
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
    side = _unwrapped([token for token in side if token.kind != "currency"])
    if not any(token.kind == "number" for token in side) or _is_function(side):
        return _NAME
    if len(side) == 1:
        return _number(side[0].match) or _EXPRESSION
    if (
        len(side) == 2
        and side[0].kind == "operation"
        and side[0].text.casefold() in _SIGNS
        and side[1].kind == "number"
    ):
        between = side[0].match.string[side[0].match.end() : side[1].match.start()]
        # A minus with a space behind it may be a dash.
        is_dash = between.isspace() and not side[0].text.isalpha()
        number = None if is_dash else _number(side[1].match)
        if number is not None:
            value = number.value if side[0].text == "+" else -number.value
            return WrittenNumber(side[0].text + between + number.text, value, number.is_percent)
    return _EXPRESSION


def _unwrapped(side: _Run) -> _Run:
    """Without brackets around it all, brackets without a partner at its ends, and a dash behind it."""
    while side and side[-1].kind == "operation" and side[-1].text in _MINUS:
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
