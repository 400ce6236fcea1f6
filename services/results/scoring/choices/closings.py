"""The conclusion of an answer that works towards its choice: "Therefore, the major product is: B. 2-butanol".

A conclusion is known by its form, not by its noun: a sentence that leads to one option, which it names by
letter and text, or as "option B". It is looked for where no plain claim is found.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from services.results.scoring.answer_text import caseless
from services.results.scoring.answer_words import DENIAL_ABROAD, any_of
from services.results.scoring.choices.explanations import is_undone
from services.results.scoring.choices.options import ChoiceOptions, Named

# Characters at the end of an answer in which it concludes.
_REACH = 3_000
_MAX_SENTENCE = 600
_SENTENCE_END = re.compile(r"\n+\s*|(?<![\s(][A-Z])(?<!\A[A-Z])[.!?](?:\s+|\Z)")
# "Therefore", at the beginning of a sentence or behind a comma.
_CONCLUDES = re.compile(
    r"(?:\A|[,;:]|\b(?:and|that))\W*(?:so|thus|therefore|hence|consequently|accordingly|overall|finally|ultimately"
    r"|in (?:conclusion|summary|short)|to (?:conclude|summari[sz]e|sum up)|conclusion|final answer|answer"
    r"|based on|given (?:the|this|these|that|our)|considering|among|by elimination|after)\b",
    re.IGNORECASE,
)
_JUDGES = re.compile(
    r"\b(?:correct|right|true|best|closest|nearest|most|likely|matches|match|corresponds?|consistent|agrees|fits?"
    r"|answer|lean\w*|choose|select|pick|conclude|incorrect|false|expected|plausible|appropriate|same as"
    r"|equivalent|exactly)\b",
    re.IGNORECASE,
)
_PERHAPS = any_of(
    r"for (?:the )?(?:\w+ )?option|true for|could|might|may|maybe|perhaps|possibly|either|if|whether|unless",
    r"assum\w+|suppose|not sure|unsure|unclear|uncertain|guess(?:ed|ing)|tempt\w*|at first|initially",
    r"first glance|some|people|students?|user|you|cannot|can't|couldn't|difficult|impossible|insufficient",
    "neither|nor",
    before=r"\b",
    after=r"\b",
)
# An option is followed to what it leads to: "a precursor (option A) would likely give two peaks".
_SUPPOSES = any_of("would(?! be| say| choose| lean| go| pick)|will|does|do", before=r"\b", after=r"\b")
_WRONG_OPTION = re.compile(
    r"\b(?:incorrect|wrong|false|worst|bad|invalid|unlikely|least|eliminat\w+|exclud\w+|discard\w*|reject\w*"
    r"|rul\w+ out)\b",
    re.IGNORECASE,
)
_OPTION = r"options?|choices?|answers?|candidates?"
_OPTIONS = any_of(_OPTION, before=r"\b", after=r"\b")
_THING = any_of(_OPTION, "statements?|one|explanation|match", before=r"\b", after=r"\b")
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|never|no|nor|neither|than|unlike|without|except|instead of|rather than)\b|n't)"
    r"(?: (?:be|the|an?|option|choice|answer|by|directly|necessarily|likely|exactly|just|with|to|in)){0,3}"
    r"\W*(?:\b[A-J][.):]\W*)?\Z",
    re.IGNORECASE,
)
_DENIED_BEHIND = any_of(
    r"(?:is|are|was|were|does|do|did|has|would|can|could|cannot|must)?\s?(?:not\b|n't|never\b"
    r"|(?:\w+ly )?(?:wrong|incorrect|false|invalid|unlikely|out\b|eliminated|excluded|ruled|rejected"
    r"|irrelevant|inconsistent|less|implausible|only if|possible))",
    r"(?:\([^()]*\)\W*)?but (?:the|it|this|not|that)\b",
    before=r"\W*",
)
_LEADS = re.compile(
    r"(?:\b(?:is|are|be|was|to|with|as|by|matches|match|choose|select|pick|option|choice|answer|towards?"
    r"|favou?rs?|that|gives|yields|conclude|or|and|either|both)|[:→≈=-])\W*\Z",
    re.IGNORECASE,
)
_KIND = re.compile(r"\b(?:option|choice|answer|statement|candidate)\s*[:]?\s*[(\[]?\Z", re.IGNORECASE)
_CANDIDATE = re.compile(r"(?<![\w'^{\\/+=-])[(\[]?([A-J])(?![\w'^=+/-])")
_CORRECT = any_of("correct|right|answer|best|most|therefore|thus|hence|conclusion", before=r"\b", after=r"\b")
_JOINS = re.compile(r"\b(?:or|and|either|both)(?: (?:the|option|choice|answer))?\W*\Z", re.IGNORECASE)
_ANOTHER = -1
# Characters before the word of a heading.
_MAX_BEFORE_HEADING = 2
# Characters of a text that names its option without a letter.
_LONG = 8
_MARK_BEHIND = re.compile(r"[)\].:]\s*(?=\S)")


@dataclass(frozen=True, slots=True)
class _Closing:
    """`label`: None where the sentence concludes, and not plainly one option."""

    label: int | None
    end: int
    concludes: bool


def closing_choice(answer: str, options: ChoiceOptions, has_claims: Callable[[], bool]) -> int | None:
    """The option that the conclusion names; None where several sentences conclude differently.

    `has_claims`: whether the answer has claims, which are unclear: then the conclusion has to say that it is
    one.
    """
    tail = answer[-_REACH:]
    closings = [*_closings(tail, options)]
    if not closings:
        return None
    last = closings[-1]
    others = {one.label for one in closings if one.concludes} - {last.label, None}
    is_meant = last.concludes or not has_claims()
    if last.label is None or others or not is_meant:
        return None
    return None if is_undone(tail[last.end :], last.label, options) else last.label


def _closings(tail: str, options: ChoiceOptions) -> Iterator[_Closing]:
    start = 0
    for found in (*_SENTENCE_END.finditer(tail), None):
        end = found.end() if found else len(tail)
        sentence = tail[start:end].strip()
        # A sentence that ends amid brackets is a part of one.
        if 3 < len(sentence) < _MAX_SENTENCE and sentence.count("(") <= sentence.count(")"):
            closing = _closing(sentence, end, options)
            if closing:
                yield closing
        start = end


def _closing(sentence: str, end: int, options: ChoiceOptions) -> _Closing | None:
    concludes = _CONCLUDES.search(sentence) is not None
    if not concludes and (_SUPPOSES.search(sentence) or not _JUDGES.search(sentence)):
        return None
    named = _named_in(sentence, options)
    labels = _worded_in(sentence, options) if named is None else named
    if len(labels) > 1:
        return _Closing(None, end, concludes) if concludes else None
    is_open = (
        labels == {_ANOTHER}
        or sentence.endswith("?")
        or _PERHAPS.search(sentence)
        or DENIAL_ABROAD.search(sentence)
    )
    if not labels or is_open:
        return None
    (label,) = labels
    return _Closing(label, end, concludes)


def _named_in(sentence: str, options: ChoiceOptions) -> set[int] | None:
    """The options that a sentence names by letter and text or as options, without those that it denies.

    None where it names none.
    """
    labels: set[int] | None = None
    position = 0
    for found in _CANDIDATE.finditer(sentence):
        if found.start() < position or found[1] not in options.letters:
            continue
        named = next(options.named_at(sentence, found.start()), None)
        if named is None or (named.is_letter and not _is_meant(sentence, found, options)):
            continue
        position = named.end
        labels = (labels or set()) | _claimed(sentence, found.start(), named)
    return labels


def _claimed(sentence: str, start: int, named: Named) -> set[int]:
    """The option that is named there, and whether another one is named with it; none where it is denied."""
    before = sentence[:start]
    has_text = named.is_letter and _MARK_BEHIND.match(sentence, named.end) is not None
    behind = "" if has_text else sentence[named.end :]
    is_of_wrong = _WRONG_OPTION.search(before + behind) and _OPTIONS.search(sentence)
    if is_of_wrong or _DENIED_BEFORE.search(before) or _DENIED_BEHIND.match(behind):
        return set()
    label = _ANOTHER if named.label is None else named.label
    # With "or" the other one may be written as no option.
    return {label, _ANOTHER} if _JOINS.search(before) else {label}


def _is_meant(sentence: str, letter: re.Match[str], options: ChoiceOptions) -> bool:
    """Whether a letter stands for its option, as in "option B", "is B. 2-butanol", and "2-butanol (B)"."""
    before, end = sentence[: letter.start()], letter.end()
    kind = _KIND.search(before)
    is_marked = _MARK_BEHIND.match(sentence, end) is not None
    if kind and kind.start() <= _MAX_BEFORE_HEADING:
        # "Option B: ..." begins an analysis.
        return not is_marked
    is_last = not sentence[end:].strip(" .!)]") and _THING.search(before) is not None
    is_led_to = (is_marked or is_last) and _LEADS.search(before) is not None
    return kind is not None or is_led_to or _is_behind_its_text(before, options.letters[letter[1]], options)


def _is_behind_its_text(before: str, label: int, options: ChoiceOptions) -> bool:
    form = options.forms[label]
    return bool(form) and caseless(before).rstrip(" ([").endswith(form)


def _worded_in(sentence: str, options: ChoiceOptions) -> set[int]:
    """The options that a sentence names by texts alone, which are long enough to mean nothing else."""
    if not _CORRECT.search(sentence):
        return set()
    names = [name for name in options.names_in(sentence) if name.end - name.start >= _LONG]
    return {name.label for name in names if not _is_denied(sentence, name.start, name.end)}


def _is_denied(sentence: str, start: int, end: int) -> bool:
    return bool(_DENIED_BEFORE.search(sentence[:start]) or _DENIED_BEHIND.match(sentence, end))
