"""Finds the part of an answer that states its number, and reads it.

In this order: the last box, `#### N`, an answer in JSON, "the answer is N" or "Answer: N" (also in other
languages), and else the conclusion, which is the last sentence with a number. Courtesies, notes and checks
after it are passed by. English number words count where there is no digit. An answer that states something
else than one number, states several, or takes back what it states is unread.
"""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from services.results.scoring.answer_text import BOXED, caseless
from services.results.scoring.answer_words import (
    DOUBT_WORDS,
    any_of,
    has_one_of,
    is_own,
    sentence_before,
    stated_abroad,
)
from services.results.scoring.numbers.claims import REPLACED, claimed
from services.results.scoring.numbers.conclusion import (
    ITEM,
    MAX_SENTENCE,
    computed,
    concluded,
    denies_number,
    first_sentence,
)
from services.results.scoring.numbers.named_things import is_a_name, is_of_a_name
from services.results.scoring.numbers.number_forms import in_one_form
from services.results.scoring.numbers.number_tokens import has_number
from services.results.scoring.numbers.number_words import with_digits
from services.results.scoring.numbers.points_and_commas import groups_by_points, may_be_grouped
from services.results.scoring.numbers.written_numbers import (
    WrittenNumber,
    bare_number,
    plainly_said,
    read_number,
)

_HASHES = re.compile(r"^\s*####[ \t]*(?=\S*[^\n]*\d)(?P<claim>[^\n]+)", re.MULTILINE)
_FIELD = re.compile(
    r'"(?:final[_ ]?)?(?:answer|result|solution)"\s*:\s*(?P<claim>"(?:[^"\\]|\\.)*"|[-+.\w]+)', re.IGNORECASE
)
_IS = (
    r"(?:\s*(?:is|are|was|equals|[=:⇒→]|comes to|[-\u2013\u2014](?=\s)|(?:would|will|must|should) be)"
    r"(?:\s*(?:=|:))?)"
)
_STATEMENT = re.compile(
    rf"""
    (?<!\w) (?: final \s+ (?:answer|result|value|solution)
        | (?:(?:correct|right|exact|numerical|numeric|overall)\s+)* (?:answer|ans) )
        (?:\s+(?:to|of|for|in)\s[^.:=\n]{{0,80}}?)? (?:\s?\([^()\n]{{1,40}}\))? {_IS} \s*
    """,
    re.IGNORECASE | re.VERBOSE,
)
# 1.250 is a quarter more than one, or more than a thousand.
_MAY_BE_GROUPS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}\.\d{3}(?!\d|[.,]\d)")
_BEYOND_LATIN = "\u0250"
_WORDS_OF_STATEMENTS = ("ans", "final")
_DENIED = re.compile(r"\s*(?:not|no|isn't|n't|cannot|can't|unknown|unclear)\b", re.IGNORECASE)
# Also before a statement: a step on the way, or the answer of another.
_NOT_LAST = re.compile(
    r"\b(?:(?:wrong|incorrect|your|tempting|naive|part)\b|(?:first|second|third|fourth"
    r"|alternative)\s*(?:\w+\s*)?\Z)",
    re.IGNORECASE,
)
_DOUBT = any_of(
    *DOUBT_WORDS,
    r"hmm+|errors?|wrong|incorrect|recomput\w*|recalculat\w*|re-?check\w*|if not|however"
    r"|alternatively|no(?=,? (?:it's |it is |that's )?[-$]?\d)",
    before=r"\b",
    after=r"\b",
)
_CORRECTS = any_of(
    r"wait|oops|actually|correction|scratch that|strike that|my mistake|i (?:was|am) (?:wrong|mistaken)",
    r"(?:that|this|it)(?: is|'s| was) (?:wrong|incorrect|not right)|made an? (?:\w+ )?(?:error|mistake)",
    r"re(?:comput|calculat|-?check|do)\w*",
    before=r"\b",
    after=r"\b",
)
# What others answer wrongly takes nothing back.
_OF_OTHERS = re.compile(
    r"(?:\A|(?<=[.!?\n])|(?<=\s))\W{0,4}(?:(?:a|the|one) )?(?:very )?(?:common|frequent|typical|usual"
    r"|tempting|popular) (?:mistake|error|misconception|wrong answer|trap|pitfall)s?\b[^.!?\n]*[.!?\n]?",
    re.IGNORECASE,
)
_CORRECTION = any_of(
    r"(?:no|hmm+|oh),? (?:wait|actually)|no(?=,? [-$]?\d)|wait,? (?:no|actually|hmm+|that)|wait|oops"
    r"|hmm+,? actually"
    r"|correction(?=\s?[:,.;\d-])|scratch that|strike that|my mistake(?! was)"
    r"|actually,? (?:it|that|the (?:correct|right) answer|no)(?:'s| is| should be)?"
    r"|i (?:made (?:a mistake|an error)|meant?)",
    before=r"(?:\A|(?<=[\s.,;:!?*-]))",
    after=r"\b",
)
_RECONSIDERS = any_of(
    r"hmm+",
    r"let(?:'s| us| me) (?:recomput|recalculat|redo|reconsider|try again)\w*",
    before=r"\b",
    after=r"\b",
)
_WORDS_OF_CORRECTIONS = (
    "hmm",
    "let",
    "wait",
    "oops",
    "correct",
    "scratch",
    "strike",
    "mista",
    "actually",
    "error",
    "mean",
)
_WORDS_OF_OTHERS = ("mistake", "error", "misconception", "wrong", "trap", "pitfall")
_CONCLUDES = re.compile(
    r"=|\b(?:so|therefore|thus|hence|totals?|needs?|left|altogether|must|correct|final)\b", re.IGNORECASE
)
_UNDECIDED = re.compile(
    r"\b(?:(?:not|n't) (?:have |be |give )?(?:enough|sufficient)|insufficient|cannot be|can(?:'t| not) be) "
    r"(?:information|info|data|determined|answered|solved|known)",
    re.IGNORECASE,
)
_WORDS_OF_LACK = ("info", "data", "determined", "answered", "solved", "known")
_MAX_STATEMENTS = 50
_WORDS = re.compile(r"[^\W\d_]+")
_MANY_WORDS = 3
_LIST_MARK = re.compile(r"^[ \t]*(?P<number>\d{1,2})[.)][ \t]+(?=\S)", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*[-*•·][ \t]+(?=[^\n]*[^\W\d_]{2})", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]{2}")
_DIGIT = re.compile(r"\d")
_SIGN_BEFORE_BOX = re.compile(r"[-\u2212\d]")
_SIGN_BEHIND_BOX = re.compile(r"\^|!(?=\w)")
# How a text ends that goes on.
_BREAKS_OFF = re.compile(
    r"(?:[,(+×÷]|(?<!\d)(?<!\d )\b(?:the|an?|of|and|is|to|that|for|with|by|was|are|because|from|we|she|he"
    r"|they|be|which|her|his|their|on|at|as|if|(?<!or )so|or))\s*\Z",
    re.IGNORECASE,
)
# Characters: a shorter answer says no more than its number.
_LAST_WORD, _SHORT = 12, 40
_AS_CORRECTED = re.compile(
    r"\A[\s.,:;!*-]*(?:no,? )?(?:(?:it|that|this|the (?:correct|right|actual) answer"
    r"|the answer)(?:'s| is| should be| must be)? )?",
    re.IGNORECASE,
)
_OR = re.compile(r"[\s$]*(?:or|and)[\s$]*(?:[a-z] ?= ?)?", re.IGNORECASE)
_OR_ELSE = re.compile(r"\W*(?:or|maybe|perhaps)\b[^\n]*\d", re.IGNORECASE)
# Two facts: which of them was asked for is not said.
_LEAVING = re.compile(
    r"\W*(?:[A-Z]\w+) (?:spent|spends|paid|pays|gave|gives|used|uses|ate|sold"
    r"|lost)\b[^,=]*\d[^,=]*, leaving \S?\d[^,=]*"
)
_MARKS_OF_ITEMS = f"{ITEM} "
_FACTORIAL = re.compile(r"\d!(?!\w)(?!\s?=\s?\d)")
_STEP = re.compile(r"\W*(?:steps?|first|next|then|let)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Statement:
    """`claim` is its first sentence; `rest` follows it; `is_heading`: nothing but a colon leads to it.

    `may_group`: in its language a point may stand between groups of digits: "Respuesta: 1.250".
    """

    claim: str
    rest: str
    is_final: bool
    is_heading: bool
    may_group: bool


def stated_number(text: str, *, is_cut: bool = False) -> WrittenNumber | None:
    """Reads the final answer of a model. None where it states none, or not plainly one.

    `is_cut`: the model had no more tokens. Then a conclusion may be a step on the way, and is not read.
    """
    read = _stated_in_text(text, is_cut=is_cut)
    if read is not None and "." in read.text and may_be_grouped(read.text) and groups_by_points(text):
        return None
    return read


def _stated_in_text(text: str, *, is_cut: bool) -> WrittenNumber | None:
    is_cut = is_cut or (len(text) > _SHORT and _BREAKS_OFF.search(text[-_LAST_WORD:]) is not None)
    bare = None if is_cut else bare_number(text.strip()) or plainly_said(text)
    if bare is not None:
        return bare
    boxed = [*BOXED.finditer(text)] if "box" in text else []
    if boxed:
        return _boxed(text, boxed)
    plain = in_one_form(text)
    if not _DIGIT.search(plain):
        plain = with_digits(plain)
        if not _DIGIT.search(plain):
            return None
    marked = _marked(plain)
    return _of_last(marked, plain) if marked else _told(plain, text, is_cut=is_cut)


def _marked(plain: str) -> list[re.Match[str]]:
    """Behind hashes, or in fields of JSON."""
    for pattern, sign in ((_HASHES, "####"), (_FIELD, '"')):
        found = [*pattern.finditer(plain)] if sign in plain else []
        if found:
            # The answer of a JSON object before a result on the way.
            return [one for one in found if "answer" in one[0].casefold()] or found
    return []


def _of_last(marked: Sequence[re.Match[str]], plain: str) -> WrittenNumber | None:
    last = None if _DENIED.match(marked[-1]["claim"]) else claimed(marked[-1]["claim"].strip('"'))
    if len(marked) > 1 and _differ(marked, plain):
        return None
    return _unless_taken_back(last, _without_list_marks(plain[marked[-1].end() :]))


def _told(plain: str, text: str, *, is_cut: bool) -> WrittenNumber | None:
    plain = _BULLET.sub("", _without_list_marks(plain))
    plain = plain.lstrip(_MARKS_OF_ITEMS) if "\n" not in plain else plain
    statements, is_denied, others = _statements(plain)
    if statements:
        return _agreed(statements, text, is_cut=is_cut)
    if ", leaving " in plain and _LEAVING.fullmatch(plain):
        return None
    if is_denied or is_a_name(plain) or _is_factorial(plain) or _is_undecided(plain):
        return None
    if is_cut:
        return _first_line(plain)
    return _number_above(plain) or concluded(others, text)


def _differ(found: Sequence[re.Match[str]], text: str) -> bool:
    """Whether the last of several says something else than the one before it, and corrects nothing."""
    one, last = (claimed(each["claim"].strip('"')) for each in found[-2:])
    is_other = one is not None and last is not None and one.value != last.value
    return is_other and not _CORRECTS.search(text, found[-2].end(), found[-1].start())


def _boxed(text: str, boxed: Sequence[re.Match[str]]) -> WrittenNumber | None:
    """The number of the last box; None where it is computed with outside of it, or one of two answers."""
    last = boxed[-1]
    read = None if _FACTORIAL.search(last[1]) else read_number(in_one_form(last[1]))
    before = text[max(0, last.start() - 1) : last.start()]
    rest = text[last.end() :]
    if read is not None and has_one_of(rest.casefold(), _WORDS_OF_CORRECTIONS):
        if _CORRECTION.search(rest):
            return _corrected(in_one_form(rest))
        read = None if _RECONSIDERS.search(rest) else read
    if _SIGN_BEFORE_BOX.match(before) or _SIGN_BEHIND_BOX.match(text, last.end()):
        return None
    if len(boxed) > 1 and _OR.fullmatch(text, boxed[-2].end(), last.start()):
        other = read_number(in_one_form(boxed[-2][1]))
        return read if read and other and other.value == read.value else None
    return read


def _is_factorial(text: str) -> bool:
    return "!" in text and _FACTORIAL.search(text) is not None and not _WORD.search(text)


def _is_undecided(text: str) -> bool:
    return has_one_of(text.casefold(), _WORDS_OF_LACK) and _UNDECIDED.search(text) is not None


def _number_above(text: str) -> WrittenNumber | None:
    """A number that stands alone on the first line, with its explanation in a paragraph below."""
    line, blank, rest = text.lstrip().partition("\n\n")
    return _unless_taken_back(bare_number(line.strip(" .")), rest) if blank and _WORD.search(rest) else None


def _first_line(text: str) -> WrittenNumber | None:
    """The number that an answer begins with, where more lines follow it."""
    line, _, rest = text.lstrip().partition("\n")
    is_step = "=" in line or _STEP.match(line)
    is_stated = rest.strip() and has_number(line) and not _is_prose(line) and not is_step
    return _unless_taken_back(claimed(line), rest) if is_stated else None


def _statements(text: str) -> tuple[list[_Statement], bool, str]:
    """What is said to be the answer; whether something is denied; the text without the answers of others."""
    statements, is_denied, kept, end = [], False, [], 0
    # Of a model that repeats itself only the last ones.
    for found in deque(_stated_in(text), maxlen=_MAX_STATEMENTS):
        before = sentence_before(text, found.start())
        behind = (
            text[found.end() : found.end() + MAX_SENTENCE].lstrip(" \t\n*_:=").removeprefix("the number ")
        )
        claim = first_sentence(behind)
        if _NOT_LAST.search(before) or not is_own(before, leads_in=False):
            kept.append(text[end : max(end, found.start() - len(before))])
            end = text.find(claim, found.end()) + len(claim)
        elif (_DENIED.match(claim) and not REPLACED.match(claim)) or denies_number(claim):
            is_denied = True
        elif not claim.rstrip().endswith("?") and has_number(claim):
            rest = text[text.find(claim, found.end()) + len(claim) :]
            is_heading = found[0].rstrip().endswith(":")
            is_final = "final" in found[0].casefold()
            may_group = found.re is not _STATEMENT and found[0] < _BEYOND_LATIN
            statements.append(_Statement(claim, rest, is_final, is_heading, may_group))
    return statements, is_denied, "".join((*kept, text[end:]))


def _stated_in(text: str) -> list[re.Match[str]]:
    folded = caseless(text)
    stated = _STATEMENT.finditer(text) if has_one_of(folded, _WORDS_OF_STATEMENTS) else ()
    found = [*stated, *stated_abroad(folded)]
    return sorted(found, key=lambda one: one.start())


def _agreed(statements: list[_Statement], text: str, *, is_cut: bool) -> WrittenNumber | None:
    """The value of the last statement, unless another one says something else or the rest takes it back."""
    last = statements[-1]
    read = _stated(last, text, is_cut=is_cut)
    if is_cut and not last.rest.strip():
        return None
    if not last.is_final and read is not None:
        earlier = (one for one in statements[:-1] if not _is_corrected(one, last))
        others = (claimed(one.claim) for one in earlier)
        if any(other is not None and other.value != read.value for other in others):
            return None
    return read


def _is_corrected(statement: _Statement, last: _Statement) -> bool:
    """Whether it is taken back before the last one: "12. Wait, that's wrong. The answer is 14"."""
    between = statement.rest[: len(statement.rest) - len(last.rest) - len(last.claim)]
    return _CORRECTS.search(between) is not None


def _stated(statement: _Statement, text: str, *, is_cut: bool) -> WrittenNumber | None:
    if statement.is_heading and _is_prose(statement.claim) and has_number(statement.rest):
        # A heading above the whole answer.
        return None if is_cut else concluded(f"{statement.claim}\n{statement.rest}", text)
    if statement.may_group and _MAY_BE_GROUPS.search(statement.claim):
        return None
    if not statement.is_heading and is_of_a_name(f"is {statement.claim}"):
        return None
    return _unless_taken_back(claimed(statement.claim) or computed(statement.claim), statement.rest)


def _is_prose(claim: str) -> bool:
    """Not `12 apples`, but a sentence of a solution."""
    before = re.split(r"\d", claim, maxsplit=1)[0]
    is_sentence = len(_WORDS.findall(before)) > 1 or len(_WORDS.findall(claim)) > _MANY_WORDS
    return is_sentence or claim.startswith(ITEM) or any(sign >= "\u2e80" for sign in claim[6:])


def _unless_taken_back(read: WrittenNumber | None, rest: str) -> WrittenNumber | None:
    rest = _OF_OTHERS.sub(" ", rest) if has_one_of(rest, _WORDS_OF_OTHERS) else rest
    if _OR_ELSE.match(rest):
        return None
    if read is None or _DOUBT.search(rest):
        return None if read is None else _corrected(rest)
    later = concluded(rest, rest) if _CONCLUDES.search(rest) else None
    return read if later is None or later.value == read.value else None


def _corrected(rest: str) -> WrittenNumber | None:
    """What a text behind a statement says instead of it, where it says nothing else: "No wait, it's 8"."""
    last = deque(_CORRECTION.finditer(rest), maxlen=1)
    behind = _AS_CORRECTED.sub("", rest[last[0].end() :], count=1) if last else ""
    claim = first_sentence(behind)
    if _DOUBT.search(behind) or _DENIED.match(behind) or "?" in behind:
        return None
    return None if has_number(behind[len(claim) :]) else concluded(claim, claim)


def _without_list_marks(text: str) -> str:
    """The marks of a list that counts from 1; "14. It is so" keeps its number."""
    expected = 1

    def removed(found: re.Match[str]) -> str:
        nonlocal expected
        if int(found["number"]) not in (1, expected):
            return found[0]
        expected = int(found["number"]) + 1
        return ITEM

    return _LIST_MARK.sub(removed, text) if _LIST_MARK.search(text) else text
