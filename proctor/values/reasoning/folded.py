"""Reasoning that chats fold away in HTML: `<details><summary>Thoughts</summary>…</details>`."""

import re
from collections.abc import Iterator
from re import Match
from typing import NamedTuple

from proctor.values.reasoning.separated_text import SeparatedText, separated
from proctor.values.reasoning.surroundings import Surroundings, turn_end

_NAMES = r"(?:reasoning|thinking|thoughts?|think|chain[- _]of[- _]thought|cot)"
_TAG = re.compile(r"<details(?P<attributes>\s[^<>]{0,300})?>|(?P<end></details\s?>)", re.IGNORECASE)
_OF_TYPE = re.compile(rf"\b(?:type|class|id)=[\"']?(?:[\w -]{{0,40}}[ _-])?{_NAMES}\b", re.IGNORECASE)
_AROUND_TITLE = r"(?:</?(?:b|strong|i|em)>|[^\w<>]){0,20}"
# A heading of the reasoning, as "Thought for 3 seconds", and not one of a text about it.
_TITLED = re.compile(
    rf"\s{{0,40}}<summary(?:\s[^<>]{{0,200}})?>{_AROUND_TITLE}"
    r"(?:(?:show|view|see|my|the|model|internal|full|hidden|click to (?:see|view|expand|show)) ){0,3}"
    rf"(?:{_NAMES}(?: (?:process|steps?|trace|content|for [^<>]{{1,40}}))?"
    rf"|(?:已)?(?:深度)?思考[^<>]{{0,20}}|推理(?:过程|過程)?)"
    rf"{_AROUND_TITLE}</summary>",
    re.IGNORECASE,
)
_SUMMARY = re.compile(r"\s{0,40}<summary[^<>]{0,200}>[^<>]{0,400}(?:</?\w{1,8}>[^<>]{0,400}){0,4}</summary>")


class _Fold(NamedTuple):
    """`end` None: the text ends in it."""

    begin: Match[str]
    end: Match[str] | None


def of_folds(text: str) -> SeparatedText | None:
    """All that stands outside of them is the answer."""
    folds = [*_folds(text)] if "<details" in text.lower() else []
    if not folds:
        return None
    inside, outside, at = [], [], 0
    for fold in folds:
        outside.append(text[at : fold.begin.start()])
        at = fold.end.end() if fold.end else len(text)
        summary = _SUMMARY.match(text, fold.begin.end())
        start = summary.end() if summary else fold.begin.end()
        inside.append(text[start : fold.end.start() if fold.end else len(text)])
    if folds[-1].end is None:
        return separated([*inside, *outside], None)
    return separated(inside, "\n".join(part for part in (*outside, text[at:]) if part.strip()))


def _folds(text: str) -> Iterator[_Fold]:
    around = Surroundings(text)
    begin: Match[str] | None = None
    end: Match[str] | None = None
    depth = 0
    for tag in _TAG.finditer(text):
        if begin is None:
            if not tag["end"] and _is_reasoning(text, tag, around):
                begin, end, depth = tag, None, 1
        elif tag["end"]:
            depth, end = depth - 1, tag
            if depth == 0:
                yield _Fold(begin, end)
                begin = None
        else:
            depth += 1
    # One that is only named inside has no end of its own.
    if begin is not None and (end or turn_end(text) >= begin.start()):
        yield _Fold(begin, end)


def _is_reasoning(text: str, tag: Match[str], around: Surroundings) -> bool:
    is_named = _OF_TYPE.search(tag["attributes"] or "") or _TITLED.match(text, tag.end())
    if not is_named:
        return False
    return turn_end(text) >= tag.start() or (around.begins_sentence(tag) and not around.is_mention(tag))
