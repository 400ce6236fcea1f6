"""Separates the reasoning of a model from its answer, where its plain text has both.

Only marks that are plainly the model's own count: one at the begin of the text, or an end mark on the way, as
where the prompt has opened the reasoning. A mark in quotes, in a block of code or as a word of a sentence is
part of the answer. Every step is linear in the text.
"""

import re

from proctor.values.reasoning.blocks import of_blocks
from proctor.values.reasoning.channels import (
    of_channels,
    of_stripped_channels,
    of_thought_process,
    of_turns,
    of_unended_thought,
)
from proctor.values.reasoning.folded import of_folds
from proctor.values.reasoning.separated_text import SeparatedText, without_margins
from proctor.values.reasoning.surroundings import turn_end

# Nothing is separated from a text that has none of these.
_BEGINS = re.compile(
    r"\s*(?:[<\[◁]|&lt;|\\u003c|assistant|analysis|thought\s*\n|here(?:'|’| i)s my thought)", re.IGNORECASE
)
_FIRST = frozenset("<[◁&\\aAtThH")
_ON_THE_WAY = ("</", "[/", "◁/", "|>", "\uff5c>", "&lt;/", "\\u003c/", "assistantfinal", "<unused95>")
_ANSWER_MARKS = (
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ("<|START_TEXT|>", "<|END_TEXT|>"),
    ("<|begin_of_solution|>", "<|end_of_solution|>"),
    ("<|answer|>", "<|/answer|>"),
    ("<response>", "</response>"),
)
# Without reasoning before it, it may be a tag of any text.
_OUTPUT = ("<output>", "</output>")
_BOX, _BOX_END = "<|begin_of_box|>", "<|end_of_box|>"


def separate_reasoning(text: str, *, is_cut: bool = False) -> SeparatedText:
    """A text without marks is the answer as it is. `is_cut`: the model was stopped by a limit of length."""
    if not may_have_reasoning(text):
        return SeparatedText("", text)
    found = (
        of_channels(text)
        or of_stripped_channels(text)
        or of_turns(text)
        or of_thought_process(text, is_cut=is_cut)
        or of_blocks(text)
        or of_folds(text)
        or of_unended_thought(text, is_cut=is_cut)
        or SeparatedText("", text)
    )
    return _unwrapped(found)


def may_have_reasoning(text: str) -> bool:
    """Whether the text has a sign of a mark at all."""
    # Most answers have no such letter, and are looked through no further.
    if "/" in text or ">" in text or "assistantfinal" in text:
        # A loop: of short answers a generator would take most of the time.
        for sign in _ON_THE_WAY:
            if sign in text:
                return True
    return text.lstrip()[:1] in _FIRST and _BEGINS.match(text) is not None


def _unwrapped(found: SeparatedText) -> SeparatedText:
    """The answer without marks around it, or in the box by which GLM marks it."""
    answer, begins = found.answer, found.answer.lstrip()
    if found.reasoning and begins.startswith("<|"):
        # The template of some models begins the turn again behind the reasoning.
        answer = begins = without_margins(begins[turn_end(begins) :])
    for start, end in (*_ANSWER_MARKS, *((_OUTPUT,) if found.reasoning else ())):
        if begins[: len(start)].lower() == start.lower():
            answer = without_margins(begins[len(start) :].partition(end)[0])
            break
    before, box, rest = answer.rpartition(_BOX)
    if box and not before.endswith(("`", '"', "'")):
        inner, _, after = rest.partition(_BOX_END)
        parts = (found.reasoning, before, after)
        return SeparatedText("\n\n".join(part.strip() for part in parts if part.strip()), inner.strip())
    return found if answer is found.answer else SeparatedText(found.reasoning, answer, found.is_ended)
