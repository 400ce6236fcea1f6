"""Answers that are nothing but a choice and a word on it, or a number that has the value of one choice."""

import re
from collections.abc import Sequence
from fractions import Fraction

from services.results.scoring.choices.options import ChoiceOptions

# A model that is less sure of it names no choice.
_SURE_PERCENT = 50
_LETTER_ALONE = re.compile(
    r"<(?P<marked>[A-J])>"
    r"|(?:(?:Give|Choose|La|El|Die|Le) )?\(?(?P<letter>[A-J])\)?(?:"
    r"|(?P<verdict> is true)"
    r"| ?[,;–—-] ?(?:sin duda(?: alguna)?|sans (?:aucun )?doute|ohne (?:jeden )?Zweifel"
    r"|senza (?:alcun )?dubbio|sem dúvida|no doubt|without (?:a |any )?doubt)"
    r"|,?(?: [–—-])? \(?(?P<percent>\d{1,3}) ?%(?: (?:sure|certain|confident|confidence|certainty))?\)?"
    r"| (?:as in|for) (?P<word>\w+))[.!]?"
)
_NUMBER = re.compile(r"-?\d{1,9}(?:\.\d{1,9}|/[1-9]\d{0,8})?")


def whole_answer(answer: str, options: ChoiceOptions) -> int | None:
    """Of an answer in one line, which no choice is the same as."""
    found = _LETTER_ALONE.fullmatch(answer)
    if found:
        return _letter(found, options)
    return _of_value(answer, options.forms) if _NUMBER.fullmatch(answer) else None


def _letter(found: re.Match[str], options: ChoiceOptions) -> int | None:
    letter = found["marked"] or found["letter"]
    label = options.letters.get(letter) if options.are_lettered else None
    if label is None:
        return None
    if found["percent"]:
        # Where options are shares, it may be one of them.
        is_sure = int(found["percent"]) >= _SURE_PERCENT and not any("%" in form for form in options.forms)
        return label if is_sure else None
    word = (found["word"] or "").casefold()
    if (found["verdict"] and "true" in options.forms) or (
        word in options.forms and word != options.forms[label]
    ):
        return None
    is_of_letter = not word or word == options.forms[label] or word.startswith(letter.casefold())
    return label if is_of_letter else None


def _of_value(answer: str, forms: Sequence[str]) -> int | None:
    """As 0.25 is 1/4; none where two choices are equal."""
    value = Fraction(answer)
    equal = [at for at, form in enumerate(forms) if _NUMBER.fullmatch(form) and Fraction(form) == value]
    return equal[0] if len(equal) == 1 else None
