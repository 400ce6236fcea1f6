"""Tokens of a text that numbers are read from, and which of them stand together as one computation."""

import re
from collections.abc import Iterator
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
        (?: \s* (?P<scale> (?i:(?:hundred\s+)?
            (?:hundred|thousand|lakh|million|crore|billion|trillion) s?) )\b
          | \s? (?P<han>[万萬亿億만억]) )?
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
_ORDINALS = frozenset({"st", "nd", "rd", "th"})
_FUNCTIONS = frozenset(
    {
        "log",
        "ln",
        "sin",
        "cos",
        "tan",
        "sqrt",
        "exp",
        "lg",
        "lim",
        "arctan",
        "arcsin",
        "mod",
        "abs",
        "gcd",
        "lcm",
    }
)
SIGN_WORDS = frozenset({"minus", "negative"})
_COMPUTED_WITH = _FUNCTIONS | SIGN_WORDS
# The number behind these names a thing.
_NAMED_THINGS = (
    "article bus case chapter choice day eq equation example exercise fig figure flight gate grade item lane"
    " level line no note number option page part phase platform problem question room route section step"
    " table team train version week"
)
_NAMED = frozenset({"#", *_NAMED_THINGS.split()})
_LONGEST_NAMED = max(map(len, _NAMED))
_NUMBER_BEFORE, _MARK = "0", "#"
_JOINING = frozenset({"operation", "relation", "equals"})
_JOINS_WITH_NEXT = _JOINING | {"currency"}
_IN_RUN = _JOINING | {"number", "open", "close", "variable", "currency"}

DIGIT = re.compile(r"\d")
# Behind a number that is neither an ordinal nor goes on.
_PLAIN_END = re.compile(
    r"\d+(?:,\d{3})*(?:\.\d+)?(?=%?[.,;:!?)]?(?:\Z|\n|\ (?:[a-oq-wyzA-OQ-WYZ+=/-]|\*(?!\s?10))))"
)
_BEFORE_NUMBERS = frozenset("$=(\n")
# To the last word before a number that is neither computed with nor a sign.
_TO_LAST_WORD = re.compile(
    rf".*\s(?=(?!(?:{'|'.join(sorted(_FUNCTIONS | SIGN_WORDS))})\b)[a-z]{{2,}}[\s,;:=(])",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)


class Token(NamedTuple):
    """A tuple, because a text has many."""

    kind: str
    match: re.Match[str]


Run = list[Token]


def has_number(text: str) -> bool:
    """Some number is written, also one that is unread; neither an ordinal nor the number of a room."""
    first = DIGIT.search(text)
    if first is None:
        return False
    return _is_plainly_one(text, first.start()) or any(token.kind == "number" for token in _tokens(text))


def _is_plainly_one(text: str, start: int) -> bool:
    """Without a look at all tokens: "the total is 12 apples", with nothing but words before it."""
    if not _PLAIN_END.match(text, start):
        return False
    if start == 0 or text[start - 1] in _BEFORE_NUMBERS:
        return True
    if text[start - 1] == "-" and (start == 1 or text[start - 2] == " "):
        return True
    word = text[max(0, start - _LONGEST_NAMED - 2) : start - 1].rpartition(" ")[2]
    return text[start - 1] == " " and word.isascii() and word.isalpha() and word.casefold() not in _NAMED


def runs(text: str) -> Iterator[Run]:
    """What stands together as one computation, such as `2x + 3 = 7`."""
    run: Run = []
    is_apart = False
    for token in _tokens(text):
        if token.kind == "space":
            is_apart = True
            continue
        joins = token.kind in _JOINING or (bool(run) and run[-1].kind in _JOINS_WITH_NEXT)
        if token.kind not in _IN_RUN or (is_apart and not joins):
            if run:
                yield run
            run = []
        if token.kind in _IN_RUN:
            run.append(token)
        is_apart = False
    if run:
        yield run


def _tokens(text: str) -> Iterator[Token]:
    """A name that is computed with becomes `variable` or `operation`; the number of a thing is left out.

    Behind a name, words are passed by up to the last one before the next number, and all where there is none.
    """
    position: int | None = 0
    before = ""
    while position is not None:
        # The place of the next number, from `position` on.
        number = DIGIT.search(text, position)
        if number is None:
            return
        words = _TO_LAST_WORD.match(text, position, number.start())
        start, position = words.end() if words else position, None
        for match in _TOKEN.finditer(text, start):
            kind = _kind(match, before)
            # "Room #12", "No. 12"
            if match[0] in "#№§":
                before = _MARK
            elif kind != "space" and match[0] != ".":
                before = match[0].casefold() if kind == "name" else _NUMBER_BEFORE if kind == "number" else ""
            yield Token(kind, match)
            if kind == "name" and match.start() > number.start():
                position = match.end()
                break


def _kind(match: re.Match[str], before: str) -> str:
    """`before` is the name before it, or whether a number or a mark of one is."""
    if match["number"]:
        is_ordinal = (match["glued"] or "").casefold() in _ORDINALS
        return "other" if before in _NAMED or is_ordinal else "number"
    folded = match[0].casefold()
    # "log2", "log_2"
    if match["name"] is None or (
        len(folded) > 1 and folded.rstrip("0123456789").rstrip("_") not in _COMPUTED_WITH
    ):
        return match.lastgroup or "other"
    is_operation = len(folded) > 1 or (folded == "x" and before == _NUMBER_BEFORE)
    return "operation" if is_operation else "variable"
