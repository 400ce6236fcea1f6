"""Reasoning on a channel of its own, or behind a heading in words."""

import re

from proctor.values.reasoning.separated_text import SeparatedText, separated
from proctor.values.reasoning.surroundings import Surroundings, turn_end

_HARMONY = re.compile(
    r"(?:<\|start\|>\s{0,4}\w{1,20}[^<]{0,80})?<\|channel\|>\s*(?P<channel>analysis|commentary|final)\b"
    r"[^<]{0,200}(?:<\|constrain\|>[^<]{0,80})?<\|message\|>"
)
_HARMONY_ENDS = re.compile(r"<\|(?:end|return|call|start|channel)\|>")
# The prompt has begun the head of the first message.
_HEAD_BEGUN = re.compile(r"\s*(?=(?:analysis|commentary|final)<\|message\|>)")
_FINAL = "assistantfinal"
_STRIPPED_BEGINS = re.compile(r"\s*(?:assistant)?analysis(?=\S)")
# Sentences: "analysisResult = 1" is code.
_STRIPPED_GOES_ON = re.compile(r"[^\W_a-z][^\s=:(\[{.]*\s+[^\s=:]|[\u2e80-\ud7ff]")
_STRIPPED_FINAL = re.compile(r"(?<![ \t`'\"])assistantfinal(?![a-z_])")
_STRIPPED_CHANNEL = re.compile(r"assistant(?:analysis|commentary)(?=[^\sa-z]|$)")
_GRANITE_BEGINS = re.compile(r"\s*here(?:'|’| i)s my thought process:?", re.IGNORECASE)
_GRANITE_ENDS = re.compile(r"here(?:'|’| i)s my response:?", re.IGNORECASE)
# Of s1, whose turn has two parts.
_TURNS = re.compile(
    r"\s*<\|im_start\|>think\b(?P<thought>.*?)(?:<\|im_end\|>\s*)?(?:<\|im_start\|>answer\b(?P<answer>.*))?\Z",
    re.DOTALL,
)
_GEMMA_BEGINS = re.compile(r"\s*thought[ \t]*\n")


def of_channels(text: str) -> SeparatedText | None:
    """OpenAI's harmony: the answer is the last message on the channel `final`."""
    if _HEAD_BEGUN.match(text):
        text = f"<|channel|>{text.lstrip()}"
    elif "<|channel|>" not in text:
        return None
    heads = list(_HARMONY.finditer(text))
    is_begun = bool(heads) and turn_end(text) >= heads[0].start()
    if not is_begun:
        around = Surroundings(text)
        heads = [head for head in heads if not (around.is_quoted(head) or around.is_in_fence(head))]
        if not any(head["channel"] == "final" for head in heads):
            return None
    ends = [head.start() for head in heads[1:]] + [len(text)]
    messages = [_until_mark(text, head.end(), end) for head, end in zip(heads, ends, strict=True)]
    finals = [at for at, head in enumerate(heads) if head["channel"] == "final"]
    answer = messages.pop(finals[-1]) if finals else None
    # What stands before the first one was opened by the prompt.
    opened = [] if is_begun else [_until_mark(text, 0, heads[0].start())]
    return separated([*opened, *messages], answer)


def _until_mark(text: str, start: int, end: int) -> str:
    stop = _HARMONY_ENDS.search(text, start, end)
    return text[start : stop.start() if stop else end]


def of_stripped_channels(text: str) -> SeparatedText | None:
    """Harmony without its special tokens: `analysis…assistantfinal…`."""
    begins = _STRIPPED_BEGINS.match(text)
    if begins:
        before, final, answer = text.rpartition(_FINAL)
        if not final and not _STRIPPED_GOES_ON.match(text, begins.end()):
            return None
        reasoning = (before if final else text)[begins.end() :]
        return separated([_STRIPPED_CHANNEL.sub("\n", reasoning)], answer if final else None)
    if _FINAL not in text:
        return None
    around = Surroundings(text)
    finals = [mark for mark in _STRIPPED_FINAL.finditer(text) if not around.is_mention(mark)]
    return separated([text[: finals[-1].start()]], text[finals[-1].end() :]) if finals else None


def of_turns(text: str) -> SeparatedText | None:
    """The thought and the answer of one turn, each as a turn of its own."""
    if "<|im_start|>think" not in text:
        return None
    found = _TURNS.match(text)
    if found is None:
        return None
    answer = found["answer"]
    return separated([found["thought"]], None if answer is None else answer.removesuffix("<|im_end|>"))


def of_thought_process(text: str, *, is_cut: bool) -> SeparatedText | None:
    """Granite's sentences. The first one alone also begins an ordinary answer, which gives its steps."""
    begins = _GRANITE_BEGINS.match(text)
    if begins is None:
        return None
    ends = _GRANITE_ENDS.search(text, begins.end())
    if ends:
        return separated([text[begins.end() : ends.start()]], text[ends.end() :])
    return separated([text[begins.end() :]], None) if is_cut else None


def of_unended_thought(text: str, *, is_cut: bool) -> SeparatedText | None:
    """Gemma's thought without its end mark: the answer is the last line, or the last block of code."""
    begins = _GEMMA_BEGINS.match(text)
    if begins is None:
        return None
    body = text[begins.end() :].rstrip()
    if is_cut:
        return separated([body], None)
    start = body.rfind("\n") + 1
    if not start:
        return separated([body], None)
    if body.endswith("```"):
        start = max(body.rfind("```", 0, -3), 0)
    return separated([body[:start]], body[start:])
