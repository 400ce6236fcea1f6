"""Whether an answer says that a statement is true, where the choices are true and false.

It is asked of a statement, and answered in a sentence about it: "The claim is accurate", "It is a myth".
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from services.results.scoring.answer_words import is_own, sentence_before
from services.results.scoring.choices.claims import stated_choices
from services.results.scoring.choices.explanations import is_doubted
from services.results.scoring.choices.options import ChoiceOptions

_PAIR = ["false", "true"]
_THING = (
    "(?:statement|claim|assertion|sentence|proposition|hypothesis|argument|theorem|equation"
    "|inequality)(?: that)?"
    # What it says, up to its verdict.
    r"(?:(?!\b(?:but|and|while|because|since|so|though|if|true|false|correct|wrong)\b)[^.;:,?!\n]){0,120}?"
)
_SUBJECT = (
    "(?:(?P<named>(?:(?:the|this|that|your|above|given|following|provided|original) )+"
    rf"{_THING})|this|that|it)"
)
_SURELY = (
    "(?: (?:therefore|thus|indeed|actually|clearly|definitely|certainly|also|absolutely|simply|obviously"
    "|in fact|factually|logically|(?:most )?likely|probably|an?|common))*"
)
_TRUE = "(?:true|correct|accurate|right|valid)"
_FALSE = "(?:false|incorrect|inaccurate|wrong|untrue|invalid|myth|misconception)"
_SAYS = re.compile(
    rf"(?<![\w']){_SUBJECT}(?:"
    rf"(?:'s| is| was| must be| has to be)(?P<not> not)?{_SURELY} (?:(?P<true>{_TRUE})|(?P<false>{_FALSE}))"
    rf"|(?: (?:isn't|wasn't|cannot be|can not be|can't be)){_SURELY} (?P<denied>{_TRUE})"
    rf"|(?P<holds> holds(?: true)?)|(?P<fails> (?:does not|doesn't) hold(?: true)?))"
    # Nothing that makes it a part, a case or a degree of the truth.
    r"(?=\s*(?:\Z|[.!)\n]|[,;:-]|(?:because|since|as|so|that|for the (?:given|following))\b))"
    r"(?!,? (?:if|when|only|unless|but|except|or|in|for|though|although)\b)",
    re.IGNORECASE,
)
_WORDS = ("hold", "true", "correct", "accurate", "right", "valid", "false", "wrong", "myth", "misconception")
_CONCLUDES = re.compile(r"\b(?:so|thus|therefore|hence|that)\W*\Z", re.IGNORECASE)
_TURNS = re.compile(
    r"\b(?:but|however|although|though|except|unless|partly|partially|depends|or|not sure|only)\b|\?",
    re.IGNORECASE,
)
_REPLY = re.compile(r"\W*(?:(?P<yes>yes|true|correct)|(?P<no>no|false|incorrect))\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Said:
    is_true: bool
    is_plain: bool
    end: int


def judged_statement(answer: str, options: ChoiceOptions) -> int | None:
    """None where the choices are no such pair, or where not all that is said of the statement agrees.

    "That is not true" alone is unread: it may deny more than the statement.
    """
    if sorted(options.forms) != _PAIR:
        return None
    folded = answer.casefold()
    if not any(word in folded for word in _WORDS):
        return None
    said = [*_said(answer)]
    rest = answer[said[-1].end :] if said else ""
    if not any(one.is_plain for one in said) or _TURNS.search(rest) or is_doubted(rest):
        return None
    labels = {options.forms.index("true" if one.is_true else "false") for one in said}
    labels |= {claim.label for claim in stated_choices(answer, options) if claim.label is not None}
    reply = _REPLY.match(answer)
    if reply:
        labels.add(options.forms.index("true" if reply["yes"] else "false"))
    return labels.pop() if len(labels) == 1 else None


def _said(answer: str) -> Iterator[_Said]:
    """What the answer says itself of the truth of the statement."""
    for found in _SAYS.finditer(answer):
        before = sentence_before(answer, found.start())
        if not is_own(_CONCLUDES.sub("", before), leads_in=False):
            continue
        if found["not"] and found["false"]:
            continue
        is_denied = bool(found["not"] or found["denied"])
        is_true = bool(found["holds"] or (found["true"] and not found["not"]))
        is_plain = bool(found["named"]) or not is_denied or answer.startswith(" that ", found.end())
        yield _Said(is_true, is_plain, found.end())
