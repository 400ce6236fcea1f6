"""The option that an answer speaks for as a whole, by the evidence of its sentences.

It is tried where no form of a claim is known. Of the sentences that conclude the last one counts, where it
stands at the end or first of all, unless one of equal weight says otherwise and nothing corrects it.
"""

import re

from services.results.scoring.answer_words import COURTESY, DENIAL_ABROAD, allows_others_abroad
from services.results.scoring.choices.doubts import NO, YES, voices_doubt
from services.results.scoring.choices.evidence import Sentence, Weight, sentences
from services.results.scoring.choices.explanations import is_doubted
from services.results.scoring.choices.options import ChoiceOptions

# Characters at the end of an answer in which it concludes.
_REACH = 2_000
_CORRECTS = re.compile(
    r"\b(?:wait|actually|no,|however|but|reconsider\w*|on (?:second thought|reflection)|rather|mistake|upon"
    r"|correct(?:ion|ed)|i correct|re-?check\w*|re-?evaluat\w*)\b",
    re.IGNORECASE,
)
_FINAL = re.compile(
    r"\W*(?:so|thus|therefore|hence|final(?:ly)?|in conclusion|overall|conclusion|my final)\b", re.IGNORECASE
)
_NOTHING = re.compile(
    r"\bno (?:answer|option|choice) is|\bflawed\b|\brefuse\b"
    r"|\bnone of (?:the|these)(?: \w+){0,3} (?:options|choices|answers|is|are|fit|match)"
    r"|\b(?:cannot|can't|unable to|impossible to) (?:be )?(?:\w+ly )?(?:determin|answer|decid|choos|conclu"
    r"|tell|say)",
    re.IGNORECASE,
)
# "Let me know if B is what you meant."
_OFFERS_ANOTHER = re.compile(
    r"\b(?:let me know|feel free|tell me|correct me)\b[^.!?\n]*\bif (?:the )?(?:option |choice |answer )?"
    r"\(?[A-J]\)? (?:is|was|would|seems)\b",
    re.IGNORECASE,
)
_REPLIES = re.compile(
    r"\W*(?:or|and|wrong|false|incorrect|not|no|nope|untrue|if|unless|maybe|perhaps|second)\b", re.IGNORECASE
)
_PREFERS_ANOTHER = re.compile(r"\b(?:but|however|though|yet)\b[^.!?\n]*\bbetter\b", re.IGNORECASE)
_REASONS = re.compile(r"\[THINK\]|<[^<> ]{0,20}(?:think|thought|reason|analysis|channel)", re.IGNORECASE)
# Sentences at the end that conclude.
_FEW = 2


def weighed_choice(answer: str, options: ChoiceOptions) -> int | None:
    tail = answer[-_REACH:]
    if (_REASONS.search(tail) and "</" not in tail) or _NOTHING.search(tail):
        return None
    is_whole = len(answer) <= _REACH
    if _OFFERS_ANOTHER.search(tail):
        return None
    said = [one for one in sentences(tail, options, is_whole=is_whole) if not COURTESY.match(one.text)]
    weighty = [one for one in said if (one.labels and one.weight >= Weight.CONCLUDED) or one.is_open]
    if not said:
        return None
    label = _concluded(said, weighty, tail) if weighty else _named(said)
    return _told(said, options) if label is None else label


def _concluded(said: list[Sentence], weighty: list[Sentence], tail: str) -> int | None:
    *others, last = weighty
    if last.is_open or len(last.labels) != 1 or not _may_conclude(said, last, tail):
        return None
    is_final = _FINAL.match(last.text) is not None
    for one in others:
        if one.is_open or one.labels == last.labels or one.weight < last.weight:
            continue
        is_revised = is_final and not _FINAL.match(one.text)
        if not is_revised and not _CORRECTS.search(tail[one.end - len(one.text) : last.end]):
            return None
    if not is_final and _has_rivals(said, last):
        return None
    return _held(said, last)


def _may_conclude(said: list[Sentence], last: Sentence, tail: str) -> bool:
    """Whether it stands where answers conclude: at the end, or first of all."""
    begin = tail.rstrip().rfind("\n\n")
    return last is said[0] or last in said[-_FEW:] or last.end > begin >= 0


def _has_rivals(said: list[Sentence], last: Sentence) -> bool:
    """Whether another option is named by its letter alone, or told behind it, and not denied."""
    is_claimed = last.weight is Weight.CLAIMED
    for one in said:
        is_behind = one.end > last.end
        if is_behind and not is_claimed and one.is_told and one.is_at_the_end and one.labels - last.labels:
            return True
        is_equal = one.weight < Weight.CONCLUDED and not is_claimed and len(one.lettered) == 1
        if (one is last or is_behind or is_equal) and one.lettered - last.labels:
            return True
    return False


def _held(said: list[Sentence], claim: Sentence) -> int | None:
    """The one option of a sentence, unless what follows takes it back."""
    [label] = claim.labels
    behind = [one for one in said if one.end > claim.end]
    rest = " ".join(one.text for one in behind)
    is_denied = any(label in one.denied for one in behind) or (
        behind and DENIAL_ABROAD.search(behind[0].text)
    )
    is_open = (
        _REPLIES.match(rest)
        or _PREFERS_ANOTHER.search(rest)
        or is_doubted(rest)
        or allows_others_abroad(rest)
    )
    return None if is_denied or is_open else label


def _named(said: list[Sentence]) -> int | None:
    """No sentence concludes: the first one or the last one names an option, and none names another."""
    named = [one for one in said if one.labels and one.weight is Weight.NAMED]
    labels = frozenset[int]().union(*(one.labels for one in named))
    if len(labels) != 1 or any(one.lettered - labels for one in said):
        return None
    last = named[-1]
    begins = last is said[0] and not last.lettered
    ends = last is said[-1] and last.is_at_the_end
    return _held(said, last) if (begins or ends) and not voices_doubt(last.text) else None


def _told(said: list[Sentence], options: ChoiceOptions) -> int | None:
    """A last sentence about the world that begins or ends with the only option that it names."""
    is_of_words = not options.are_lettered and any(form in NO | YES for form in options.forms)
    last = said[-_FEW:]
    told = [one for one in last if one.labels or one.is_open]
    if is_of_words or not told or (told[-1] is not said[-1] and len(said) > _FEW):
        return None
    labels = frozenset[int]().union(*(one.labels for one in told))
    is_one = len(labels) == 1 and not any(one.is_open or labels & one.denied for one in last)
    stands = told[-1].is_told and (len(said) == 1 or told[-1].is_at_the_end)
    is_doubtful = voices_doubt(" ".join(one.text for one in said))
    return next(iter(labels)) if is_one and stands and not is_doubtful else None
