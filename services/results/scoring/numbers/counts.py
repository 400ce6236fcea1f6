"""Sentences whose first number is the count, and whose second one only says of what."""

import re

from services.results.scoring.answer_words import has_one_of
from services.results.scoring.numbers.written_numbers import WrittenNumber, read_number

_NEEDED = re.compile(
    r"\W*(?:(?:so|thus|therefore|hence|(?:this|that) means),?\s)?(?:for \S?\d[\d,.]*(?: [a-z]+){1,4}, )?"
    r"(?P<value>\d[\d,.]*(?: [a-z]+){1,4}) (?:are|is|will be|were) (?:needed|required|necessary)"
    r"(?: (?:for|to|in) [^.;=]*)?\W*",
    re.IGNORECASE,
)
_SOME_OF = re.compile(r"\W*(?P<value>\d[\d,]*) of (?:the|these) \d[\d,]* [a-z][^\d=?]*", re.IGNORECASE)
_VALUE = (
    r"(?P<value>[-$€£]{0,2}\d(?:[\d,.]*\d)?%?(?: (?!more|less|fewer|extra|times|apart|or|and|to)"
    r"[a-z]+){0,3}?)"
)
_LEFT = re.compile(
    rf"(?:(?!\b(?:left|remaining)\b)[^=?;])*\b(?:has|have|had|leaving|leaves|with) (?:only |just )?"
    rf"{_VALUE} (?:left|remaining)"
    r"(?: over)?(?:,? out of (?:the )?(?:original )?\S?\d[\d,.]*(?: [a-z]+){0,2})?\W*",
    re.IGNORECASE,
)
_COMES_TO = re.compile(
    r"[^=?;]*\d[^=?;]*\b(?:that's|that is|that makes|(?:that|this|it|which) comes to"
    r"|for a total(?: cost)? of)"
    rf" (?:only |just |exactly )?{_VALUE}\W*",
    re.IGNORECASE,
)
_IS_SUM = re.compile(
    rf"\W*{_VALUE} is the (?:sum|difference|product|quotient|average|mean|remainder)\b"
    r"(?:(?!\b(?:but|is|are|was|not)\b)[^=?;])*",
    re.IGNORECASE,
)
_WORDS_OF_SUMS = ("that's ", "that is ", "that makes ", " comes to ", "for a total ")
# One that is only thought of, or denied, or one of several.
_CASE = re.compile(
    r"\b(?:if|when|until|unless|before|once|after|while|would|could|might|may|should|want\w*|need\w*|each"
    r"|per|not|never|\w+n't|or|whether|than|suppose|assum\w+|initially|originally|first)\b(?! at \$)",
    re.IGNORECASE,
)
# The exact value before the rounded one: "1/3, which is about 0.333".
_OR_ABOUT = re.compile(
    r"(\d/\d+),? (?:which is|that is|or) (?:about|approximately|roughly|around) \S?\d[\d.,]*%?(?=\W*\Z)",
    re.IGNORECASE,
)


def count_of_things(sentence: str) -> WrittenNumber | None:
    """ "Thus 18 tiles are needed for 36 square feet", "18 of the 36 tiles are red"."""
    is_need = "needed" in sentence or "required" in sentence or "necessary" in sentence
    found = _NEEDED.fullmatch(sentence) if is_need else None
    if found is None and " of the" in sentence:
        found = _SOME_OF.fullmatch(sentence)
    if found is None:
        found = _comes_out(sentence)
    return read_number(found["value"]) if found else None


def _comes_out(sentence: str) -> re.Match[str] | None:
    """What is left, or what it comes to, at the end of a sentence: "She had 10, ate 3, and has 7 left"."""
    if (" left" in sentence or " remaining" in sentence) and not _CASE.search(sentence):
        return _LEFT.fullmatch(sentence)
    may_come = "that" in sentence or " comes to " in sentence or " for a total " in sentence
    if may_come and has_one_of(sentence, _WORDS_OF_SUMS) and not _CASE.search(sentence):
        return _COMES_TO.fullmatch(sentence)
    return _IS_SUM.fullmatch(sentence) if " is the " in sentence else None


def without_rounded(text: str) -> str:
    return _OR_ABOUT.sub(r"\1", text)
