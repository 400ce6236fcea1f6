"""What a model answers in the end: without its reasoning, and without the turns that it writes for others.

A model that was given examples goes on with the next one, and a chat that is not stopped with the next
question: what follows such a sign is no part of the answer. Reasoning that never ends leaves no answer.
"""

import re

_TAGS = "think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad"
_OPENING = rf"(?:<(?:{_TAGS})>|\[THINK\]|◁think▷)"
_CLOSING = re.compile(rf"</(?:{_TAGS})>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_UNFINISHED = re.compile(rf"{_OPENING}.*\Z", re.DOTALL | re.IGNORECASE)
_ONE_FIELD = re.compile(
    r'(?:```\w*\s*)?\{\s*"(?:answer|choice|option|label)"\s*:\s*"([^"]*)"\s*\}(?:\s*```)?', re.IGNORECASE
)
_FIELD = (
    "question|q|query|problem|exercise|task|instructions?|example|passage|paragraph|context|text|input|article"
    "|document|abstract|premise|hypothesis|sentence|review|tweet|comment|statement|claim|story|title|dialogue"
    "|conversation|word|headline|options|choices|human|user|assistant|system"
)
_NEXT_TURN = re.compile(
    r"<\|[^|<>]{1,40}\|>|</?s>|<eos>|<(?:start|end)_of_turn>|\[/?INST\]"
    rf"|\n\W{{0,6}}(?:{_FIELD})\s?\d{{0,2}}\W{{0,3}}:",
    re.IGNORECASE,
)


def final_answer(text: str) -> str:
    """Every step is linear in the text, however often a model that has lost itself repeats a sign."""
    text = _on_final_channel(text)
    closings = list(_CLOSING.finditer(text))
    text = _UNFINISHED.sub("", text[closings[-1].end() :] if closings else text).strip()
    text = _tagged(text).strip()
    as_json = _ONE_FIELD.fullmatch(text)
    if as_json:
        return as_json[1].strip()
    next_turn = _NEXT_TURN.search(text)
    return (text[: next_turn.start()] if next_turn else text).strip()


def _on_final_channel(text: str) -> str:
    """The last message on it; the whole text where there is none."""
    _, channel, last = text.rpartition("<|channel|>final")
    _, message, said = last.partition("<|message|>")
    return said if channel and message else text


def _tagged(text: str) -> str:
    """What the last answer between tags is; the whole text where there is none."""
    folded = text.lower()
    end = folded.rfind("</answer>")
    start = folded.rfind("<answer>", 0, end) if end >= 0 else -1
    return text[start + len("<answer>") : end] if start >= 0 and len(folded) == len(text) else text
