"""Forms that settle on a choice where no plain claim holds: a correction, a question with its answer, a sum.

They are tried last, so that an answer that is read plainly pays nothing for them. All that read a choice must
agree.
"""

import re
from collections.abc import Iterator

from services.results.scoring.answer_words import DENIAL_ABROAD, DENIAL_WORDS, is_own
from services.results.scoring.choices.doubts import NO, YES, voices_doubt
from services.results.scoring.choices.options import ChoiceOptions
from services.results.scoring.choices.settling.corrections import MAY_CORRECT, ReadClaim, corrected_choices

_QUESTION = re.compile(
    r"(?P<asked>[^?\n:]{1,80})(?P<mark>[?:])\s*(?:(?:no|nope"
    r"|yes)[,.!:]\s*)?(?P<reply>[^?\n]+)",
    re.IGNORECASE,
)
# "Is it B? Yes."
_ASKED_AND_AFFIRMED = re.compile(
    r"\W*(?:(?:so|then|and)\W{1,2})?(?:is it|could it be|can it be|is the answer|would it be|so)"
    r" (?:option |choice )?(?P<name>[^?.!\n]{1,80})\? (?:yes|correct|right|indeed|exactly)[.!]?",
    re.IGNORECASE,
)
_OF_QUESTIONS = re.compile(
    r"\W|\b(?:is|it|are|the|a|an|or|and|either|perhaps|maybe|not|answer|option|hm+|well|so|oh|ok)\b",
    re.IGNORECASE,
)
_DENIED_FIRST = re.compile(
    r"(?P<denied>[^.!?\n]*\b(?:is|are|was|were)(?: not|n't)\b[^.!?\n;]*)[.!;]\s+"
    r"(?:rather,? |instead,? |but )?"
    r"(?P<name>[^.!?\n]+?) (?:is|are|was|were)\s*\.?",
    re.IGNORECASE,
)
_NOT_FIRST = re.compile(r"not (?P<denied>[^.;!\n]{1,80})[.;!]\s+(?=\S)", re.IGNORECASE)
# "I change it to C."
_CHANGED = re.compile(
    r"\b(?:chang|switch|revis|updat|correct)\w*(?: (?:it|this|my|the|answer|choice|from"
    r"|[a-j])){0,4} to (?:option |choice )?"
    r"(?P<name>[^.,;:!?\n]{1,80})[.!]?\s*\Z",
    re.IGNORECASE,
)
_LAST_IS = re.compile(
    r"(?P<before>[^.!?:;\n]{3,200})\b(?:is|are|was|were|be|corresponds? to|matches)\s+"
    r"(?:(?:the|an?|indeed|clearly|called|named|therefore) )*(?P<name>[^!?\n]+)",
    re.IGNORECASE,
)
_OF_KIND = re.compile(
    r"(?P<before>[^.!?:;,\n]{3,200})\b(?:is|has|expresses|conveys|reflects|carries)"
    r" (?:an? )?(?:(?:clearly|very|strongly|overall|mostly|generally) )?(?P<name>[\w-]{3,20})"
    r" (?:sentiment|tone|review|connotation|statement|comment|tweet)[.!]?",
    re.IGNORECASE,
)
_MARKED = re.compile(r"[A-Z][.):] ")
_ENDS = " .!)"
_OPTION_AT_THE_END = re.compile(r"\b(?:answer )?(?:option|choice) \(?[a-z]\)?[.!]?\Z")
_NEITHER = re.compile(
    r"[^.!?\n]{1,80}\b(?:is|are|was|were) neither (?P<one>[^.,!?\n]+?),? nor (?P<other>[^.,!?\n]+)\.?",
    re.IGNORECASE,
)
# What a hypothesis does, as the label that says so.
_RELATES = re.compile(
    r"\b(?:(?P<entailment>entails?|is entailed by|(?:logically )?follows from|is implied by|implies)"
    r"|(?P<contradiction>contradicts?|is contradicted by))\b",
    re.IGNORECASE,
)
_FORCED = re.compile(
    r"\bif (?:forced|pressed|i (?:had|have|must) (?:to )?(?:choose|guess|pick|answer|decide|select))"
    r"[^.,:;\n]{0,40}[,:]\s*"
    r"(?:(?:i'd|i would) (?:say|choose|pick|guess|answer|go with"
    r"|select) )?(?P<name>[^.,;:!?\n]+)[.!]?\s*\Z",
    re.IGNORECASE,
)
_ENTRY_END = re.compile(r"%[,;.]?\s*")
_SHARE = re.compile(r"\s*\d+(?:\.\d+)?\s*")
_COMPUTED = re.compile(r"(?P<left>[\d\s.+*/×÷()-]+)=(?P<right>[\d\s.+*/×÷()-]+?)\.?")
# Stars between factors went as marks of emphasis.
_OPERATION = re.compile(r"\d\s*[+*/×÷-]|\d\s+\d")


def concluded_choice(answer: str, options: ChoiceOptions, read: ReadClaim) -> int | None:
    """`read` reads a plain claim in a part of the answer."""
    labels = {label for label in _conclusions(answer.strip(), options, read) if label is not None}
    return labels.pop() if len(labels) == 1 else None


def _conclusions(answer: str, options: ChoiceOptions, read: ReadClaim) -> Iterator[int | None]:
    """Each form is looked for only where its sign stands: most answers that are unread have none."""
    folded = answer.lower()
    if MAY_CORRECT.search(folded):
        yield from corrected_choices(answer, options, read)
    if "if " in folded:
        forced = _FORCED.search(answer)
        yield options.being(forced["name"]) if forced else None
    if " to " in folded and (changed := _CHANGED.search(answer)):
        yield options.being(changed["name"])
    if "%" in answer:
        yield _likeliest(answer, options)
    if "\n" in answer:
        return
    if "?" in answer or ":" in answer:
        yield _asked_and_answered(answer, options)
    if "neither" in folded:
        yield _neither(answer, options)
    if "=" in answer:
        yield _computed(answer, options)
    if "?" not in answer:
        labels = [*_of_one_sentence(answer, folded, options)]
        yield from [] if not labels or voices_doubt(answer) else labels


def _of_one_sentence(answer: str, folded: str, options: ChoiceOptions) -> Iterator[int]:
    label = None
    if "not " in folded or "n't " in folded:
        label = _denied_and_replaced(answer, options)
    elif (
        _OPTION_AT_THE_END.search(folded) or _MARKED.search(answer)
        if options.are_letters
        else _OPTION_AT_THE_END.search(folded) or folded.rstrip(_ENDS).endswith(tuple(options.forms))
    ):
        label = _at_the_end(answer, options)
    if label is None and not options.are_letters:
        label = _of_kind(answer, options)
    if label is None and _NOT_FIRST.match(folded):
        label = _named_after_denial(answer, options)
    if label is None and "contradiction" in options.forms:
        label = _related(answer, options)
    if label is not None:
        yield label


def _asked_and_answered(answer: str, options: ChoiceOptions) -> int | None:
    """ "London? No, Paris.", and "True or false: false"."""
    affirmed = _ASKED_AND_AFFIRMED.fullmatch(answer)
    if affirmed:
        return options.being(affirmed["name"])
    found = _QUESTION.fullmatch(answer)
    label = options.being(found["reply"]) if found else None
    if found is None or label is None:
        return None
    names = options.names_in(found["asked"])
    others = found["asked"]
    for name in reversed(names):
        others = others[: name.start] + others[name.end :]
    asks_all = {name.label for name in names} == set(range(len(options.forms)))
    # "Yes? No." denies what it asks.
    is_name = found["mark"] == "?" and options.forms[label] not in NO | YES
    return label if names and (asks_all or is_name) and not _OF_QUESTIONS.sub("", others) else None


def _denied_and_replaced(answer: str, options: ChoiceOptions) -> int | None:
    """ "London is not the capital. Paris is." """
    found = _DENIED_FIRST.fullmatch(answer)
    label = options.being(found["name"]) if found else None
    denied = {name.label for name in options.names_in(found["denied"])} if found else set()
    return label if denied and label not in denied else None


def _named_after_denial(answer: str, options: ChoiceOptions) -> int | None:
    """ "Not London. Paris." """
    denial = _NOT_FIRST.match(answer)
    denied = {name.label for name in options.names_in(denial["denied"])} if denial else set()
    label = options.being(answer[denial.end() :]) if denial else None
    return label if denied and label not in denied else None


def _at_the_end(answer: str, options: ChoiceOptions) -> int | None:
    """One sentence about the world that ends with its only choice: "The capital of France is B. Paris"."""
    found = _LAST_IS.fullmatch(answer)
    if (
        not found
        or DENIAL_WORDS.search(answer)
        or DENIAL_ABROAD.search(answer)
        or not is_own(found["before"], leads_in=False)
    ):
        return None
    label = _named_with_text(found["name"], options)
    names = {name.label for name in options.names_in(answer)}
    if label is None or names != {label} or options.forms[label] in NO | YES:
        return None
    return label


def _named_with_text(name: str, options: ChoiceOptions) -> int | None:
    """A choice by its text, or by its letter with a text behind it: a letter alone may be any."""
    named = next((one for one in options.named_at(name, 0) if one.is_letter), None)
    if named is None or not options.are_letters:
        return options.being(name) if len(name.strip(" .()")) > 1 else None
    if _OPTION_AT_THE_END.fullmatch(name.lower()):
        return named.label
    is_marked = name[: named.end].endswith(")") or name[named.end : named.end + 1] in (".", ":")
    return named.label if is_marked and name[named.end :].strip(" .:)") else None


def _of_kind(answer: str, options: ChoiceOptions) -> int | None:
    """ "This is a negative review."."""
    found = _OF_KIND.fullmatch(answer)
    if not found or _is_denied(answer) or not is_own(found["before"], leads_in=False):
        return None
    label = options.being(found["name"])
    return label if {name.label for name in options.names_in(answer)} == {label} else None


def _is_denied(text: str) -> bool:
    return bool(DENIAL_WORDS.search(text) or DENIAL_ABROAD.search(text))


def _related(answer: str, options: ChoiceOptions) -> int | None:
    """ "The hypothesis contradicts the premise." """
    kinds = {found.lastgroup for found in _RELATES.finditer(answer)}
    is_one_sentence = not re.search(r"[.!;]\s", answer)
    if len(kinds) != 1 or not is_one_sentence or _is_denied(answer) or not is_own(answer, leads_in=False):
        return None
    [kind] = kinds
    names = {name.label for name in options.names_in(answer)}
    label = options.forms.index(kind) if kind in options.forms else None
    return label if label is not None and names <= {label} else None


def _neither(answer: str, options: ChoiceOptions) -> int | None:
    found = _NEITHER.fullmatch(answer)
    if not found or "neither" not in options.forms:
        return None
    denied = [options.being(found["one"]), options.being(found["other"])]
    label = options.forms.index("neither")
    return label if None not in denied and label not in denied and len({*denied}) > 1 else None


def _likeliest(answer: str, options: ChoiceOptions) -> int | None:
    """The largest of the shares of all choices, where an answer is no more than these."""
    shares: dict[int, float] = {}
    for entry in _ENTRY_END.split(answer.rstrip(" .%\n") + "%"):
        name, _, share = entry.rpartition(":")
        label = options.being(name) if name and _SHARE.fullmatch(share) else None
        if entry and (label is None or label in shares):
            return None
        if label is not None:
            shares[label] = float(share)
    if len(shares) < len(options.forms) or abs(sum(shares.values()) - 100) > 1:
        return None
    best = [label for label, share in shares.items() if share == max(shares.values())]
    return best[0] if len(best) == 1 else None


def _computed(answer: str, options: ChoiceOptions) -> int | None:
    """The side of an equation that is a number: "3 + 2 = 5"."""
    found = _COMPUTED.fullmatch(answer)
    if not found:
        return None
    sides = [found["left"].strip(), found["right"].strip()]
    numbers = [side for side in sides if not _OPERATION.search(side)]
    return options.forms.index(numbers[0]) if len(numbers) == 1 and numbers[0] in options.forms else None
