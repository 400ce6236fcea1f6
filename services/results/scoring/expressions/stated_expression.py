"""Finds the part of an answer that states its expression.

In this order: the last box, `#### E`, "the answer is E" or "Answer: E" (also in other languages), a text that
is an expression as a whole, and else what the last sentence concludes. An answer that states none is unread.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from services.results.scoring.answer_text import caseless
from services.results.scoring.answer_words import (
    COURTESY,
    DENIAL_WORDS,
    DOUBT_WORDS,
    any_of,
    is_own,
    sentence_before,
    stated_abroad,
)
from services.results.scoring.expressions.written_form import is_expression

# A model that has lost itself repeats the same for ever.
_MAX_ANSWER_CHARACTERS = 100_000
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_LIST_JOINT = r"\s*(?:,?\s*(?:and|or|und|et|y|和|或)\s|[,;、])?\s*"
_BETWEEN_BOXES = re.compile(rf"[\s$.\\()\[\]]*{_LIST_JOINT}[\s$\\()\[\]]*")
_FORMULA = re.compile(
    r"\$\$(?P<display>[^$]+)\$\$|\\\[(?P<bracket>.+?)\\\]|\\\((?P<inline>.+?)\\\)"
    r"|(?<![\\$\d])\$(?P<dollar>(?:[^$\n\\]|\\.)+)\$(?!\d)",
    re.DOTALL,
)
_PROSE = re.compile(r"(?<![\\A-Za-z{])[a-z]{3,} [a-z]{2,}(?![A-Za-z}])")
# A formula is kept by its place in a list: the words around it are read without it.
_KEPT = re.compile("\x1a(\\d+)\x1a")
_ONLY_KEPT = re.compile(rf"\x1a\d+\x1a(?:{_LIST_JOINT}\x1a\d+\x1a)*")
_HASHES = re.compile(r"^\s*####[ \t]*(?P<claim>\S[^\n]*)", re.MULTILINE)
_STATEMENT = re.compile(
    r"(?<!\w)(?:(?:final|correct|right|exact|simplified|overall)\s+)*(?:answer|ans|result|solution)"
    r"(?:\s+(?:to|of|for|in)\s[^.:=\n]{0,80}?)?"
    r"\s*(?:(?:is|are|equals|would be|must be)(?:\s+(?:therefore|thus|simply|then|given by))?\s*:?|:)\s*",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"[,;]?\s*(?<!\w)(?:because|since|as (?:the|we|it)|which|where|when|if"
    r"|for (?:all|any|every)|by|after)(?!\w)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])(?:\s+|\Z)|\n+|(?<=[。！？])")
_LEADS_ON = re.compile(
    r"(?<!\w)(?:is|are|equals?|be|gives?|get|obtain|have|yields?|becomes|ist|est|es|è|é)(?!\w)"
    r"|[:=⇒→∴是为為は]|(?<!\w)(?:so|thus|hence|therefore),?",
    re.IGNORECASE,
)
_DOUBT = any_of(
    *DOUBT_WORDS, r"errors?|wrong|incorrect|re-?check\w*|not (?:right|correct)", before=r"\b", after=r"\b"
)
_MARKS = re.compile(r"\*\*|__|`|^[#>\s]+", re.MULTILINE)
_AROUND_CLAIM = " \t\n.,;:。，"
# Longer ones are sentences: words of an answer, and characters that lead to its formula.
_MAX_WORDS = 3
_MAX_LEAD = 60


@dataclass(frozen=True, slots=True)
class StatedExpression:
    """`is_formula`: written as one; else words, which may only be those of the target."""

    text: str
    is_formula: bool = True


def stated_expression(text: str, *, is_cut: bool = False) -> StatedExpression | None:
    """`is_cut`: the model had no more tokens. Then a conclusion may be a step on the way, and is not read."""
    text = text[-_MAX_ANSWER_CHARACTERS:]
    boxed = boxed_expression(text)
    if boxed or _BOX.search(text):
        return StatedExpression(boxed) if boxed else None
    formulas: list[str] = []
    plain = _MARKS.sub("", _FORMULA.sub(lambda found: _kept(found, formulas), text)).strip()
    for found in reversed([*_HASHES.finditer(text)]):
        return _claimed(_FORMULA.sub(lambda one: _kept(one, formulas), found["claim"]), formulas)
    stated, is_denied = _statement(plain, formulas, is_cut=is_cut)
    if stated or is_denied or is_cut:
        return stated
    return _concluded(plain, formulas)


def _kept(found: re.Match[str], formulas: list[str]) -> str:
    inside = next(group for group in found.groups() if group is not None)
    if found["dollar"] and (not inside.strip() or _PROSE.search(inside)):
        # Between two sums of money.
        return found[0]
    formulas.append(inside.strip())
    return f"\x1a{len(formulas) - 1}\x1a"


def boxed_expression(text: str) -> str | None:
    """The inside of the last box, and of those with which it is one list. One never closed is none."""
    spans = []
    for found in _BOX.finditer(text) if "box" in text else ():
        end = _closing_brace(text, found.end())
        if end is not None:
            spans.append((found.start(), end + 1, text[found.end() : end].strip()))
    inside: list[str] = []
    first = len(text)
    for start, end, content in reversed(spans):
        if inside and not _BETWEEN_BOXES.fullmatch(text, end, first):
            break
        first = start
        inside.insert(0, content)
    return ", ".join(dict.fromkeys(inside)) if inside else None


def _closing_brace(text: str, start: int) -> int | None:
    depth = 1
    for brace in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return brace.start()
    return None


def _statement(plain: str, formulas: Sequence[str], *, is_cut: bool) -> tuple[StatedExpression | None, bool]:
    """The last statement that is the model's own; whether there are only others, or it is taken back."""
    found = sorted(
        [*_STATEMENT.finditer(plain), *stated_abroad(caseless(plain))], key=lambda one: one.start()
    )
    has_others = False
    for one in reversed(found):
        behind = plain[one.end() :].lstrip(" \t\n*_:=")
        claim = _SENTENCE_END.split(behind, maxsplit=1)[0]
        rest = behind[len(claim) :]
        if claim.rstrip().endswith("?") or not is_own(sentence_before(plain, one.start()), leads_in=False):
            has_others = True
            continue
        if DENIAL_WORDS.match(claim) or _DOUBT.search(rest):
            return None, True
        stated = _claimed(claim, formulas)
        if stated and not (
            is_cut and not rest.strip(_AROUND_CLAIM) and not claim.rstrip().endswith((".", "。"))
        ):
            return stated, False
    return None, has_others


def _claimed(claim: str, formulas: Sequence[str]) -> StatedExpression | None:
    """The expression of a claim, or its words."""
    for text in (_REASON.split(claim, maxsplit=1)[0], claim):
        stated = _formula_in(text, formulas)
        if stated:
            return stated
    words = claim.strip(_AROUND_CLAIM)
    is_short = 0 < len(words.split()) <= _MAX_WORDS
    return StatedExpression(words, is_formula=False) if is_short else None


def _formula_in(text: str, formulas: Sequence[str]) -> StatedExpression | None:
    """A text that is one expression, or that has only one list of formulas, with or without words around."""
    text = text.strip(_AROUND_CLAIM)
    lists = [*_ONLY_KEPT.finditer(text)]
    if len(lists) == 1:
        [found] = lists
        before, behind = text[: found.start()].strip(), text[found.end() :].strip()
        joined = ", ".join(formulas[int(one)] for one in _KEPT.findall(found[0]))
        if len(before) <= _MAX_LEAD and len(behind.split()) <= _MAX_WORDS and not DENIAL_WORDS.search(before):
            # A unit, or "million".
            return StatedExpression(f"{joined} \\text{{{behind}}}" if behind.isalpha() else joined)
        return None
    return StatedExpression(text) if not lists and is_expression(text) else None


def _concluded(plain: str, formulas: Sequence[str]) -> StatedExpression | None:
    """What the last sentence with a formula leads to."""
    for sentence in reversed([one for one in _SENTENCE_END.split(plain) if one.strip()]):
        if COURTESY.match(sentence) or sentence.rstrip().endswith("?"):
            continue
        if DENIAL_WORDS.search(sentence) or _DOUBT.search(sentence):
            return None
        if not _KEPT.search(sentence) and is_expression(sentence.strip(_AROUND_CLAIM)):
            return StatedExpression(sentence.strip(_AROUND_CLAIM))
        starts = [0, *(found.end() for found in _LEADS_ON.finditer(sentence))]
        for start in reversed(starts):
            stated = _formula_in(_REASON.split(sentence[start:], maxsplit=1)[0], formulas)
            # A variable alone is what a sentence is about.
            if stated and (start or not stated.text.isalpha() or sentence == plain):
                return stated
        if _KEPT.search(sentence):
            return None
    return None
