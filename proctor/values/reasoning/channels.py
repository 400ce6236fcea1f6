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
# Of s1, whose turn has two parts; the second one has another name, or none, with other templates.
_THOUGHT_BEGINS = re.compile(
    r"\s*(?:<\|im_start\|>assistant\s*)?"
    r"(?:<\|im_start\|>(?:think(?:ing)?|thoughts?|reasoning)\b"
    r"|<\|start_header_id\|>(?:think(?:ing)?|thoughts?|reasoning)<\|end_header_id\|>)"
)
_THOUGHT_ENDS = re.compile(
    r"(?:<\|(?:im_end|eot_id)\|>\s*)?"
    r"(?:<\|im_start\|>(?:answer|assistant|final)\b|<\|start_header_id\|>assistant<\|end_header_id\|>)"
    r"|<\|(?:im_end|eot_id)\|>"
)
_TURN_ENDS = ("<|im_end|>", "<|eot_id|>")
_WITHOUT_CHANNEL = "<|start|>assistant<|message|>"
_GEMMA_BEGINS = re.compile(r"\s*thought[ \t]*\n")


def of_channels(text: str) -> SeparatedText | None:
    """OpenAI's harmony: the answer is the last message on the channel `final`."""
    if _HEAD_BEGUN.match(text):
        text = f"<|channel|>{text.lstrip()}"
    elif "<|channel|>" not in text:
        return None
    # A message of no channel is for the reader.
    text = text.replace(_WITHOUT_CHANNEL, "<|start|>assistant<|channel|>final<|message|>")
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
    answer = messages.pop(finals[-1]) if finals else _behind_end(text, heads[-1].end())
    # What stands before the first one was opened by the prompt.
    opened = [] if is_begun else [_until_mark(text, 0, heads[0].start())]
    return separated([*opened, *messages], answer)


def _behind_end(text: str, start: int) -> str | None:
    """What stands behind the last message, without a head of its own."""
    rest = text[start:].partition("<|end|>")[2].strip()
    return rest if rest and not rest.startswith("<|") else None


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
    begins = _THOUGHT_BEGINS.match(text) if "<|im_start|>" in text or "_header_id|>" in text else None
    if begins is None:
        return None
    ends = _THOUGHT_ENDS.search(text, begins.end())
    answer = text[ends.end() :].rstrip() if ends else ""
    while answer.endswith(_TURN_ENDS):
        answer = answer[: answer.rindex("<|")].rstrip()
    thought = text[begins.end() : ends.start() if ends else len(text)]
    # Only code of more lines has an indentation that counts.
    answer = answer if "\n" in answer.strip() else answer.strip()
    return separated([thought], answer or None)


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
