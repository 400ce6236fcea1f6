"""Where an answer claims plainly that a choice is the right one: in a sentence that says nothing else."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from re import Match

from services.results.scores.choice_doubts import EXPLAINS, is_denied
from services.results.scores.choice_options import Named, Options


def _one_of(*alternatives: str) -> str:
    return f"(?:{'|'.join(alternatives)})"


_SO = _one_of(
    "(?:and )?so|thus|therefore|hence|finally|overall|in conclusion|in summary|conclusion",
    r"(?:based on|according to|given) [^,.:;?!\n]{1,60}",
)
_BEST = "(?:(?:final|correct|right|best|single|overall|most|appropriate|likely|predicted) )*"
_NOUN = "(?:answer|option|choice|label|response|classification|category|sentiment|relation|relationship)"
# Before a colon these name a field of the question.
_SUBJECT = "(?:statement|hypothesis|claim|sentence|review|tone)"
# No other words: "the answer to avoid", "the option to eliminate".
_OF_WHAT = _one_of(
    "(?:to|for|of) (?:the|this|your) (?:(?:above|given|following) )?"
    "(?:question|problem|passage|review|text|statement|sentence|movie|film|tweet)",
    "between (?:the|these)(?: (?:two|premise|hypothesis|sentences?|statements?|and|the)){1,6}",
    "here",
)
_IS = " (?:is|must be|should be|would be)(?: (?:clearly|definitely|therefore|thus|(?:most )?likely))?"
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
_IT_IS = "(?:it is|it's|this is) (?:(?:clearly|definitely) )?"
_IS_RIGHT = (
    " is (?:(?:the|clearly|definitely) )*"
    r"(?:(?:correct|right|best)(?: (?:answer|option|choice|one))?|answer)\b"
)
_HEAD = re.compile(
    r"(?:\A|(?<=[.!?]\s)|(?<=\n))(?:[\s#>]|[*•-]\s+(?![\d.]))*"
    rf"(?:(?:{_SO}[,:]? )?(?:(?P<stated>{_STATED})\s*|(?P<it_is>{_IT_IS})))?",
    re.IGNORECASE,
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
_BOXED = re.compile(r"\\boxed\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_EDGES_OF_FORMULA = "{}$ "


@dataclass(frozen=True, slots=True)
class Claim:
    """`label`: None where what is claimed is not plain. `end`: where in the answer the claim ends.

    `is_stated`: it is a sentence or a line of its own, and not only the choice with which an answer begins.
    """

    label: int | None
    end: int
    is_stated: bool = True


def claims_of(answer: str, options: Options) -> list[Claim]:
    """In order of their ends."""
    found = [*_boxed(answer, options), *_on_lines(answer, options), *_in_sentences(answer, options)]
    return sorted(found, key=lambda claim: claim.end)


def _boxed(answer: str, options: Options) -> Iterator[Claim]:
    for found in _BOXED.finditer(answer):
        before, after = answer[: found.start()], answer[found.end() :]
        is_plain = _SENTENCE_ENDS.match(after.lstrip(_EDGES_OF_FORMULA)) and not is_denied(before)
        yield Claim(options.being(found[1].strip(_EDGES_OF_FORMULA)) if is_plain else None, found.end())


def _on_lines(answer: str, options: Options) -> Iterator[Claim]:
    """Whole lines that are a choice; one amid others, or that ends a sentence, is only in the way."""
    start = 0
    for line in answer.splitlines(keepends=True):
        end = start + len(line)
        label = options.being(line)
        if label is not None:
            is_last = end >= len(answer) and _AFTER_SENTENCE.search(answer[:start]) is not None
            yield Claim(label if start == 0 or is_last else None, end)
        start = end


def _in_sentences(answer: str, options: Options) -> Iterator[Claim]:
    for head in _HEAD.finditer(answer):
        claims = (_claimed(head, named, options) for named in options.named_at(answer, head.end()))
        claim = next((claim for claim in claims if claim), None)
        if claim:
            yield claim


def _claimed(head: Match[str], named: Named, options: Options) -> Claim | None:
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
    return Claim(named.label, end.end(), is_stated) if is_stated or begins_the_answer else None


def _is_one_of(forms: frozenset[str], named: Named, options: Options) -> bool:
    return named.label is not None and options.forms[named.label] in forms
