"""Replies to a question or a statement: "Yes, ethanol takes more", "The claim is accurate", "24 apples".

True and false are asked of a statement, and answered in a sentence about it. Where all choices are numbers,
the one that the answer states is read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from services.results.scoring.answer_words import is_own, sentence_before
from services.results.scoring.choices.claims import stated_choices
from services.results.scoring.choices.doubts import NO, YES, is_taken_back, voices_doubt
from services.results.scoring.choices.explanations import first_sentence, is_doubted, is_undone
from services.results.scoring.choices.options import ChoiceOptions
from services.results.scoring.numbers.stated_number import stated_number

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
    rf"(?:(?:'s| is| was| must be| has to be)(?P<not> not)?"
    rf"|(?: seems| appears| turns out)(?: to be)?){_SURELY} (?:(?P<true>{_TRUE})|(?P<false>{_FALSE}))"
    rf"|(?: (?:isn't|wasn't|cannot be|can not be|can't be)){_SURELY} (?P<denied>{_TRUE})"
    rf"|(?P<holds> holds(?: true)?)|(?P<fails> (?:does not|doesn't) hold(?: true)?))"
    # Nothing that makes it a part, a case or a degree of the truth.
    r"(?: (?:statement|claim|assertion|one))?(?=\s*(?:\Z|[.!)\n]|[,;:-]|(?:because|since|as|so|that"
    r"|for the (?:given|following))\b))"
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
_FIRST_WORD = re.compile(
    r"\W*(?P<word>[^\W\d_]+)(?P<mark>\s*[,:;.!]|\s+-+(?=\s)|(?=\s+(?:it|he|she|they|that|this|you|we|there)\b))\s*",
    re.IGNORECASE,
)
_PAIRS = NO | YES
_REPLIES_AGAIN = re.compile(
    r"\W*(?:yes|no|nope|true|false|not?|and|or|but|wait|maybe|perhaps|possibly|unless|if|both|also|either|neither|too)\b",
    re.IGNORECASE,
)
_FEWEST_WORDS = 3
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
# "(2)" and "option 2" may mean the second choice.
_MAY_BE_A_PLACE = re.compile(
    r"[(\[]\s*\d|\b(?:option|choice|answer|number|no\.?|letter) ?#?\d"
    r"|\d (?:reasons?|options?|answers?|choices?|possibilit\w+|facts?|steps?|cases?|parts?|things?|ways?)\b",
    re.IGNORECASE,
)
_MAX_NUMBER_ANSWER = 300


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
    reply = _REPLY.match(answer)
    if (
        not said
        or not (reply or any(one.is_plain for one in said))
        or _TURNS.search(rest)
        or is_doubted(rest)
    ):
        return None
    labels = {options.forms.index("true" if one.is_true else "false") for one in said}
    labels |= {claim.label for claim in stated_choices(answer, options) if claim.label is not None}
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


def replied_choice(answer: str, options: ChoiceOptions) -> int | None:
    found = _FIRST_WORD.match(answer)
    word = found["word"].casefold() if found else ""
    if found is None or options.are_lettered or word not in options.forms:
        return None
    rest = answer[found.end() :]
    if word not in _PAIRS and (found["mark"].strip() not in (":", ";") or len(rest.split()) < _FEWEST_WORDS):
        return None
    label = options.forms.index(word)
    if any(re.search(rf"\b{re.escape(form)}\b", rest, re.IGNORECASE) for form in {*options.forms} - {word}):
        return None
    first = first_sentence(rest)
    if _REPLIES_AGAIN.match(rest) or rest[:1].isdigit() or is_taken_back(first, label, options):
        return None
    return None if is_undone(rest[len(first) :], label, options) else label


def numbered_choice(answer: str, options: ChoiceOptions) -> int | None:
    """Where all choices are numbers: the one that the answer states."""
    if (
        len(answer) > _MAX_NUMBER_ANSWER
        or not all(map(_NUMBER.fullmatch, options.forms))
        or voices_doubt(answer)
    ):
        return None
    if _MAY_BE_A_PLACE.search(answer):
        return None
    number = stated_number(answer)
    label = options.being(number.text) if number is not None and not number.is_percent else None
    return label if {name.label for name in options.names_in(answer)} <= {label} else None
