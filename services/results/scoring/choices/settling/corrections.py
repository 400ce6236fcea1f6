"""Corrections: what an answer says once it has taken back what it said before.

"The answer is A. Sorry, I meant B.", "A. Correction: B", "My first guess was A, but now it's B.". What was
taken back no longer counts; what follows has to be a plain claim, or a sentence of nothing but a choice.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator

from services.results.scoring.answer_words import one_of
from services.results.scoring.choices.claims import stated_choices
from services.results.scoring.choices.doubts import NO, YES, is_taken_back, voices_doubt
from services.results.scoring.choices.options import ChoiceOptions
from services.results.scoring.choices.settling.verdicts import settled_choice

ReadClaim = Callable[[str], int | None]

_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+(?=\s|\Z)|[.!?]+\S[^.!?\n]*)*\n?")
_REFLECTION = "on (?:second thoughts?|(?:further |closer )?(?:reflection|inspection|review))"
_CORRECTS = re.compile(
    r"\W*(?:(?:(?:oh|no|but|so|hmm+)\b[,.!:;-]+|(?:wait|actually|correction|oops|sorry|scratch that"
    r"|strike that|rather|my mistake|let me correct (?:that|this|myself)|i (?:was|am) (?:wrong|mistaken)"
    rf"|i meant?|i made (?:a mistake|an error)|{_REFLECTION})\b)[\s,.:;!-]*)+",
    re.IGNORECASE,
)
# Without these a sentence may only go on: "So, B".
_REVISES = re.compile(
    r"\b(?:wait|actually|correction|oops|scratch|strike|rather|mistake|wrong|mistaken|on)\b", re.IGNORECASE
)
# Behind these stands what is meant.
_MEANT = one_of(
    r"(?:wait|actually|hmm+|oh|oops|sorry)[,.]? no\b",
    r"no,? (?:wait|sorry)\b",
    r"(?:(?:oops|no|oh|wait)[,.]? )?(?:i'm )?sorry, (?:i meant?(?: to say)?\b|(?=\(?[A-HJ]\b))",
    r"(?:oops,? )?i meant?(?: to (?:say|write))?\b",
    r"scratch (?:that|[A-J])\b",
    r"strike that\b",
    "(?:correction|edit|update|apolog|torn|erratum)(?=:)",
    "(?:revised|corrected|updated|new) (?:final )?answer(?: is|(?=:))",
    r"(?:i )?(?:take|took) (?:that|it|this) back\b",
    r"oops\b",
    r"(?:my |i )?apolog(?:ies|i[sz]e)\b[^.:!?\n]{0,40}(?=[.:])",
    "my mistake(?=[.,:;!-])",
    "i made (?:a mistake|an error)(?=[.,:;!])",
    r"(?P<again>let me|i need to|i should|i must|i have to) (?:correct|re-?check|re-?consider|re-?read"
    r"|double[- ]check"
    r"|re-?think|re-?evaluate)(?: (?:that|this|it|myself|my answer|the question))?\b",
    r"(?:wait|hold on|actually|hmm+),? (?:that(?:'s| is| was) (?:wrong|incorrect|not right)"
    r"|i (?:misread|made|was|mis\w+)\b[^.!?\n]*)",
    rf"{_REFLECTION},?(?= (?:it(?:'s| is)|the |\(?[A-HJ]\b))",
    r"(?<=[.!?\n] )(?:actually|hold on|rather|no), (?=(?:it(?:'s| is)|i |the |option |choice ))",
    r"(?<=, )or rather\b",
)
_RETRACTS = re.compile(rf"(?:\A|(?<=[\s.,;:!(…-])){_MEANT}[\s.,:;!-]*", re.IGNORECASE)
MAY_CORRECT = re.compile(
    "no[,.]|wait|actual|correct|oops|sorry|scratch|strike|rather|mista|wrong|mean|error|second|reflect"
    "|review|apolog|torn|inspect"
    "|edit|update|erratum|revised|hold on|take|took|meant|recheck|first|initial|original|going to"
)
# A correction that only names another choice may be a thought.
_STATES = re.compile(r"\b(?:answer|choice|option|correct|right|true|false)\b", re.IGNORECASE)
# "I was going to say A, but B.": the view that was given up, and the turn behind it.
_FIRST_VIEW = re.compile(
    r"\W*(?:i was torn between\b|my (?:first|initial|original) (?:answer|thought|guess|choice"
    r"|instinct) (?:was|is)\b"
    r"|(?:at first|initially|originally),? i\b"
    r"|i (?:was going to|initially|originally|first|had first|almost) (?:say|said|thought|chose|picked"
    r"|answered"
    r"|leaned|guessed|pick|choose|went|wrote)\b)[^.?\n]*?"
    r"(?:[;,]? (?:but|yet)\b|[.;] now\b|[.;] however\b,?|;)(?P<rest>[^?]+)",
    re.IGNORECASE,
)
_AT_ONCE = re.compile(
    r"(?P<first>[^.,;?!…\n]{1,60})(?:\.{2,}|…|,|\?|\.| -)\s*(?:(?:oh|hmm+|wait|actually|or rather),? )?"
    r"(?:no|hmm+,? actually|actually),? (?:(?:it's|it is|that's) )?(?P<name>[^.,;?!\n]{1,60})[.!]?",
    re.IGNORECASE,
)
_FEW_WORDS = 100
# Words that voice no doubt where an answer is replaced.
_SHOULD_BE = re.compile(
    r" should (?:be|have been)\b|\b(?:the |my )?(?:correct |right )?answer\b(?= ?:| is\b)", re.IGNORECASE
)
_BY_NOW = re.compile(
    r"\s*(?:now\b|(?:after|on|upon|having) [^,.;]{3,40}?(?:,|(?= (?:it|i|the)\b))|in fact\b|actually\b"
    r"|[,\s])*\s*",
    re.IGNORECASE,
)


def corrected_choice(answer: str, options: ChoiceOptions, read: ReadClaim) -> int | None:
    """None as well where the forms of a correction disagree."""
    if not MAY_CORRECT.search(answer.lower()):
        return None
    labels = {label for label in corrected_choices(answer, options, read) if label is not None}
    return labels.pop() if len(labels) == 1 else None


def corrected_choices(answer: str, options: ChoiceOptions, read: ReadClaim) -> Iterator[int | None]:
    """`read` reads a plain claim in a part of the answer."""
    yield _corrected(answer, options, read)
    yield _retracted(answer, options, read)
    yield _given_up(answer, options, read)
    yield _at_once(answer, options)


def _corrected(answer: str, options: ChoiceOptions, read: ReadClaim) -> int | None:
    """The sentence that takes an answer back says at once what is right."""
    for sentence in reversed([*_SENTENCE.finditer(answer)]):
        corrects = _CORRECTS.match(sentence[0])
        if corrects:
            rest = answer[sentence.end() :]
            is_stated = _STATES.search(sentence[0], corrects.end()) is not None
            is_last = not rest.strip() and _REVISES.search(corrects[0]) is not None
            label = read(sentence[0][corrects.end() :].strip()) if is_stated or is_last else None
            if label is None or (
                not is_stated and _may_be_a_thought(answer[: sentence.start()], label, options)
            ):
                return None
            return None if is_taken_back(rest, label, options) else label
    return None


def _retracted(answer: str, options: ChoiceOptions, read: ReadClaim) -> int | None:
    """What stands behind words that take all before them back: "A... wait, no. It is in France, so B"."""
    last = deque(_RETRACTS.finditer(answer), maxlen=1)
    rest = answer[last[0].end() :].strip() if last else ""
    # "Let me recheck: C" may only begin to.
    is_begun = last and last[0]["again"] and options.being(rest) is not None
    return None if is_begun else _meant(rest, options, read)


def _given_up(answer: str, options: ChoiceOptions, read: ReadClaim) -> int | None:
    """What stands behind a first view: "I was going to say A, but B"."""
    found = _FIRST_VIEW.fullmatch(answer)
    now = _BY_NOW.match(found["rest"]) if found else None
    return _meant(found["rest"][now.end() :], options, read) if found and now else None


def _at_once(answer: str, options: ChoiceOptions) -> int | None:
    """Two choices and nothing else, of which the second one replaces the first: "A... no, D"."""
    found = _AT_ONCE.fullmatch(answer) if len(answer) < _FEW_WORDS else None
    if found is None:
        return None
    first, label = options.being(found["first"]), options.being(found["name"])
    is_other = first is not None and label is not None and first != label
    return label if is_other and label is not None and options.forms[label] not in NO | YES else None


def _meant(rest: str, options: ChoiceOptions, read: ReadClaim) -> int | None:
    if not rest or "?" in rest or voices_doubt(_SHOULD_BE.sub(" is", rest)):
        return None
    label = read(rest)
    label = settled_choice(rest, options) if label is None else label
    return None if label is None or options.forms[label] in NO | YES else label


def _may_be_a_thought(before: str, label: int, options: ChoiceOptions) -> bool:
    """Whether a correction that only names a choice stands against a plain answer."""
    claimed = {claim.label for claim in stated_choices(before, options)}
    return options.forms[label] in NO | YES or bool(claimed - {label})
