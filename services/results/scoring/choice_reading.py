"""Reads which choice an answer names in words; an unclear one is unread: a wrong label is worse than none.

Of the answer itself (`final_answer`) only these forms are read, with X a choice, its letter, or both as in
"(B) London", whatever its case, markup and quotes:

1. X is the whole answer, or the whole first or last line.
2. A sentence says so, and nothing else: "So the answer is X", "Answer: X", "I choose X", "X is correct"; or
   the answer is no more than "It is X"; or a formula is boxed.
3. The answer begins with X and explains it: "X. The ...", "X because ...", "Yes, the ...".

All that is read in this way must be one and the same choice. What follows it may explain it: where that takes
it back, doubts it, passes a verdict on it, or names another choice other than in passing, nothing is read.

A letter stands for the choice that is that letter or begins with it ("B. Paris"), else for the choice in that
place. Where choices are only letters, what they stand for may follow: "B. 42".
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from re import Match, Pattern

from services.results.scoring.answer_text import BOXED, final_answer, unmarked
from services.results.scoring.choice_options import ChoiceOptions, Named, options_of


def _any_of(*alternatives: str, before: str = "", after: str = "") -> Pattern[str]:
    """Words, without regard to case."""
    return re.compile(rf"{before}(?:{'|'.join(alternatives)}){after}", re.IGNORECASE)


def _one_of(*alternatives: str) -> str:
    return f"(?:{'|'.join(alternatives)})"


_IN_NEXT_SENTENCE = r"[^.!?。\n]*"
EXPLAINS = (
    "(?:the|this|that|it|these|those|they|there|he|she|we|you|both|because|since|based|according|given|in|an?"
    r"|its|his|her|their|not|explanation|reason|reasoning|rationale|justification)\b"
)
_EXPLAINS = re.compile(rf"\s*{EXPLAINS}", re.IGNORECASE)
# Not "A. 10%" and not the initials of "C. S. Lewis".
_SAYS_WHAT_A_LETTER_IS = re.compile(r"\s*(?![A-Z]\.|\d+\s*[%/])[A-Z\d$]")
_LAST_SENTENCE = re.compile(r"[.!?。\n]")
_NO = frozenset({"no", "false"})
_YES = frozenset({"yes", "true", "correct", "entailment", "acceptable", "positive"})
_DENIES_OTHER = re.compile(
    r"\b(?:not|nor|neither|than|unlike|isn't|aren't|wasn't)(?: an?| the)? [(\[]?\Z", re.IGNORECASE
)
_IS_WRONG = re.compile(r" (?:is|are|was) (?:wrong|incorrect|false|not\b)", re.IGNORECASE)
_IN_PASSING = re.compile(
    r"\s+(?!(?:and|or|but|so|then|it|they|he|she|we|you|i|this|that|too|also|fits|works)\b)"
    r"(?!(?:is|are|was|must be|seems) (?:(?:also|the|more|most|a|clearly|in fact) )*"
    r"(?:correct|right|true|best|likely))[^\W\d_]",
    re.IGNORECASE,
)
# Characters before a choice in which words that deny or claim it are searched: room for the longest words.
_BEFORE = 40
_BEST = "(?:(?:final|correct|right|best|single|overall|most|appropriate|likely|predicted) )*"
_NOUN = "(?:answer|option|choice|label|response|classification|category|sentiment|relation|relationship)"
# Before a colon these name a field of the question.
_SUBJECT = "(?:statement|hypothesis|claim|sentence|review|tone)"
_IS = " (?:is|must be|should be|would be)(?: (?:clearly|definitely|therefore|thus|(?:most )?likely))?"
_IT_IS = "(?:it is|it's|this is) (?:(?:clearly|definitely) )?"
_IS_RIGHT = (
    " is (?:(?:the|clearly|definitely) )*"
    r"(?:(?:correct|right|best)(?: (?:answer|option|choice|one))?|answer)\b"
)
_TAIL = re.compile(rf"(?P<is_right>{_IS_RIGHT})?(?:です|입니다|이다)?", re.IGNORECASE)
_END = re.compile(
    r"\s*(?:\Z|\n)|[.!。]+(?:\s+(?!\d)|\Z)|,?\s+(?=(?:because|since)\b)"
    rf"|(?P<goes_on>\s?[,–—-]\s+)(?={EXPLAINS})",
    re.IGNORECASE,
)
_END_OF_LETTER = re.compile(r"[.:]\s+(?=[A-Z\d$])|(?<=\))\s+(?=[A-Z\d$])")
_AFTER_SENTENCE = re.compile(r"[.!。)\]}]\s*\Z")
_SENTENCE_ENDS = re.compile(r"\Z|[.!\n]")
_MAY_GO_ON = frozenset({"yes", "no", "true", "false"})
_EDGES_OF_FORMULA = "{}$ "

# A model that has lost itself repeats the same for ever.
_MAX_ANSWER_CHARACTERS = 20_000
_SPACES = re.compile(r"[ \t]+")
_ON_THE_NEXT_LINE = re.compile(r":[ \t]*\n\s*")


# About the choice itself: "A. Incorrect.", "Paris. This is wrong."
_VERDICT = _any_of(
    "correct|incorrect|wrong|right|true|false|yes|no|not|never|none|nothing|neither|or|and|narrow|broad|vague",
    r"ruled|rejected|eliminated|excluded|discarded|irrelevant|mistaken|un\w+|im\w+|plausible|tempting",
    before=r"\s*(?:(?:this|that|it|which)(?: option| choice| one)?(?: is| was|'s) )?"
    r"(?:(?:also|clearly|not|too) )*",
    after=r"\b",
)
_DOUBT = _any_of(
    r"wait|hmm+|oops|nope|actually|correct(?:ion|ed)|edit|update|revis(?:e|ed|ion)|scratch that|strike that",
    r"(?:on|upon) (?:second|further|closer|reflection|review)|second thoughts?|reconsider\w*|instead|better",
    r"mistaken|mistakenly|mistake|made an error|i was wrong|i meant?|i take|kidding|joking|sorry|apolog\w+",
    r"no (?:idea|clue|opinion)|not (?:sure|certain|clear)|un(?:clear|certain|sure|answerable)|doubt\w*",
    r"depends|either way|opposite|(?:language|ai) model|as an ai|they claim|too little|answers?",
    r"(?:don't|do not|didn't) (?:know|think|believe)",
    r"(?:can't|cannot|can not|could not|couldn't|unable to|impossible to|information to) (?:be )?(?:\w+ )?"
    r"(?:answer\w*|determin\w+|say|tell|help|assist|decide|know|choose|conclude)",
    r"(?:this|that|it|which)(?: is|'s| was) (?:wrong|incorrect|false|not (?:right|correct|true))",
    r"(?:however|but|so|therefore|thus|rather),? (?:it|that|this) (?:is|isn't|was|should)",
    r"(?:should|would|might|could) (?:be|have been)|(?:option|choice|label)s? (?:is|are|was|were|must)",
    before=r"\b",
    after=r"\b",
)
_CONDITION = _any_of(
    "but|however|although|though|maybe|perhaps|possibly|unless|otherwise|if|as long as|or else",
    before=rf"{_IN_NEXT_SENTENCE}\b",
    after=r"\b",
)
_DENIAL = _any_of(
    r"not?|none|never|nothing|nor|cannot|\w+n't|wrong|incorrect|false|refuted|contradict\w*|excluded?",
    r"eliminat\w+|ruled|lacks?|fails?|den(?:y|ies|ied)|contrary|reverse|other way",
    "un(?:supported|true|likely|clear|proven)",
    before=rf"{_IN_NEXT_SENTENCE}\b",
    after=r"\b",
)
_DENIAL_ABROAD = _any_of(
    r"\b(?:nicht|nein|kein\w*|falsch|pas|faux|jamais|incorrecto|não|errad[oa]|fals[oa]|mentira|sé|sei)\b",
    r"\b(?:sbagliat[oa]|не|нет|неверно|неправильно|değil|yanlış|ليس|ليست|خطأ|لا)\b",
    "[不没沒非错錯違誤]|ない|아니|아닙|않|틀",
    before=_IN_NEXT_SENTENCE,
)
_CLAIMS_OTHER = _any_of(
    "[:;,=→–—-]",
    r"\b(?:is|it's|be|are|was|say|said|choose|pick|select|prefer|with|rather|so|thus|to|but|and|or|also|an?)",
    r"\b(?:therefore|well|then|hence|probably|likely|definitely|clearly)",
    after=r"\s*[(\[]?\Z",
)
_SO = _one_of(
    "(?:and )?so|thus|therefore|hence|finally|overall|in conclusion|in summary|conclusion",
    r"(?:based on|according to|given) [^,.:;?!\n]{1,60}",
)
# No other words: "the answer to avoid", "the option to eliminate".
_OF_WHAT = _one_of(
    "(?:to|for|of) (?:the|this|your) (?:(?:above|given|following) )?"
    "(?:question|problem|passage|review|text|statement|sentence|movie|film|tweet)",
    "between (?:the|these)(?: (?:two|premise|hypothesis|sentences?|statements?|and|the)){1,6}",
    "here",
)
_ABROAD = _one_of(
    "die (?:richtige )?antwort (?:ist|lautet)|antwort",
    "la respuesta (?:correcta )?es|respuesta|a resposta (?:correta )?é|resposta",
    "la (?:bonne )?réponse est|réponse|la risposta (?:corretta )?è|risposta",
    "(?:правильный )?ответ|(?:正确)?答案(?:是|为)?|(?:答え|正解)は?|정답[은는]?",
    "(?:الجواب|الإجابة)(?: (?:هو|هي))?",
)
_STATED = _one_of(
    f"(?:(?:the|my|this|your|its) )?{_BEST}{_NOUN}(?: {_OF_WHAT})?(?:{_IS} ?:?| ?[=:])",
    f"the {_SUBJECT}(?: {_OF_WHAT})?{_IS}",
    "i(?: would| will|'d|'ll)? (?:choose|pick|select|say|answer|go with) ?:?",
    "final ?:",
    f"{_ABROAD} ?:?",
)
_HEAD = re.compile(
    r"(?:\A|(?<=[.!?]\s)|(?<=\n))(?:[\s#>]|[*•-]\s+(?![\d.]))*"
    rf"(?:(?:{_SO}[,:]? )?(?:(?P<stated>{_STATED})\s*|(?P<it_is>{_IT_IS})))?",
    re.IGNORECASE,
)


def is_denied(before: str) -> bool:
    """Whether in the sentence that a text ends with there is a denial."""
    sentence = _LAST_SENTENCE.split(before)[-1]
    return bool(_DENIAL.match(sentence) or _DENIAL_ABROAD.match(sentence))


def is_explanation(rest: str, label: int, options: ChoiceOptions) -> bool:
    """Whether the rest only explains the choice that an answer begins with."""
    if not rest or (_EXPLAINS.match(rest) and not options.are_letters):
        return True
    repeats = any(named.label == label for named in options.named_at(rest, 0))
    says_what_it_is = options.are_letters and _SAYS_WHAT_A_LETTER_IS.match(rest)
    return bool(repeats or says_what_it_is or _EXPLAINS.match(rest)) and not _DENIAL.match(rest)


def is_taken_back(rest: str, label: int, options: ChoiceOptions) -> bool:
    """Whether the rest doubts a claim, judges it, or names another choice other than in passing."""
    if "?" in rest or _DOUBT.search(rest) or _CONDITION.match(rest) or _DENIAL_ABROAD.match(rest):
        return True
    form = options.forms[label]
    # "No. It is not so." agrees with itself, and "Yes. It is not so." does not.
    if (form not in _NO and _VERDICT.match(rest)) or (form in _YES and _DENIAL.match(rest)):
        return True
    return any(
        _is_named(rest[max(0, other.start - _BEFORE) : other.start], rest[other.end :])
        for other in options.others(rest, label)
    )


def _is_named(before: str, after: str) -> bool:
    if _DENIES_OTHER.search(before) or _IS_WRONG.match(after):
        return False
    return bool(_CLAIMS_OTHER.search(before)) or not _IN_PASSING.match(after)


@dataclass(frozen=True, slots=True)
class StatedChoice:
    """`label`: None where what is claimed is not plain. `end`: where in the answer the claim ends.

    `is_stated`: it is a sentence or a line of its own, and not only the choice with which an answer begins.
    """

    label: int | None
    end: int
    is_stated: bool = True


def stated_choices(answer: str, options: ChoiceOptions) -> list[StatedChoice]:
    """All claims, in the order of their ends."""
    found = [*_boxed(answer, options), *_on_lines(answer, options), *_in_sentences(answer, options)]
    return sorted(found, key=lambda claim: claim.end)


def _boxed(answer: str, options: ChoiceOptions) -> Iterator[StatedChoice]:
    for found in BOXED.finditer(answer):
        before, after = answer[: found.start()], answer[found.end() :]
        is_plain = _SENTENCE_ENDS.match(after.lstrip(_EDGES_OF_FORMULA)) and not is_denied(before)
        yield StatedChoice(
            options.being(found[1].strip(_EDGES_OF_FORMULA)) if is_plain else None, found.end()
        )


def _on_lines(answer: str, options: ChoiceOptions) -> Iterator[StatedChoice]:
    """Lines that are a choice as a whole; one amid others, or ending a sentence, is unclear."""
    start = 0
    for line in answer.splitlines(keepends=True):
        end = start + len(line)
        label = options.being(line)
        if label is not None:
            is_last = end >= len(answer) and _AFTER_SENTENCE.search(answer[:start]) is not None
            yield StatedChoice(label if start == 0 or is_last else None, end)
        start = end


def _in_sentences(answer: str, options: ChoiceOptions) -> Iterator[StatedChoice]:
    for head in _HEAD.finditer(answer):
        claims = (_claimed(head, named, options) for named in options.named_at(answer, head.end()))
        claim = next((claim for claim in claims if claim), None)
        if claim:
            yield claim


def _claimed(head: Match[str], named: Named, options: ChoiceOptions) -> StatedChoice | None:
    """None where the sentence says more, or only mentions a choice."""
    answer = head.string
    tail = _TAIL.match(answer, named.end)
    after = tail.end() if tail else named.end
    end = _END.match(answer, after) or (_END_OF_LETTER.match(answer, after) if options.are_letters else None)
    if end is None or (end.re is _END and end["goes_on"] and not _is_one_of(_MAY_GO_ON, named, options)):
        return None
    is_whole = head.start() == 0 and not answer[end.end() :].strip()
    is_stated = is_whole or bool(head["stated"] or (tail and tail["is_right"]))
    begins_the_answer = head.start() == 0 and not head["it_is"]
    return StatedChoice(named.label, end.end(), is_stated) if is_stated or begins_the_answer else None


def _is_one_of(forms: frozenset[str], named: Named, options: ChoiceOptions) -> bool:
    return named.label is not None and options.forms[named.label] in forms


def named_choice(text: str, choices: Sequence[str], texts: Sequence[str] = ()) -> int | None:
    """`texts`: what choices that are only letters stand for, where it is known."""
    answer = final_answer(text)
    forms = {text.strip(), answer}
    exact = [label for label, choice in enumerate(choices) if choice.strip() in forms]
    # Two choices that are the same text leave it open which one is meant.
    if exact or not answer:
        return exact[0] if len(exact) == 1 else None
    options = options_of(choices, texts)
    if options is None or len(answer) > _MAX_ANSWER_CHARACTERS:
        return None
    lines = _SPACES.sub(" ", unmarked(answer)).strip()
    return _read(_ON_THE_NEXT_LINE.sub(": ", lines), options)


def _read(answer: str, options: ChoiceOptions) -> int | None:
    claims = stated_choices(answer, options)
    labels = {claim.label for claim in claims}
    if len(labels) != 1:
        return None
    (label,), rest = labels, answer[claims[-1].end :]
    if label is None or is_taken_back(rest, label, options):
        return None
    is_stated = any(claim.is_stated for claim in claims)
    return label if is_stated or is_explanation(rest, label, options) else None
