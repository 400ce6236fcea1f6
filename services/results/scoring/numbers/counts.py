"""Sentences whose first number is the count, and whose second one only says of what."""

import re

from services.results.scoring.numbers.written_numbers import WrittenNumber, read_number

_NEEDED = re.compile(
    r"\W*(?:(?:so|thus|therefore|hence|(?:this|that) means),?\s)?(?:for \S?\d[\d,.]*(?: [a-z]+){1,4}, )?"
    r"(?P<value>\d[\d,.]*(?: [a-z]+){1,4}) (?:are|is|will be|were) (?:needed|required|necessary)"
    r"(?: (?:for|to|in) [^.;=]*)?\W*",
    re.IGNORECASE,
)
_SOME_OF = re.compile(r"\W*(?P<value>\d[\d,]*) of (?:the|these) \d[\d,]* [a-z][^\d=?]*", re.IGNORECASE)
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
    return read_number(found["value"]) if found else None


def without_rounded(text: str) -> str:
    return _OR_ABOUT.sub(r"\1", text)
