"""A judge that an order or a suite names for the answers of a run."""

import re
from dataclasses import dataclass

DEFAULT_PROMPT = "correctness"
# The first at sign that a scale follows: labels may have others.
_SCALED = re.compile(r"(.+?)@(yes-no|1-\d+|labels:.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class NamedJudge:
    """It judges by an installed `prompt`, or by a `document`."""

    model: str
    prompt: str = ""
    scale: str = ""
    document: str = ""


def read_judge(text: str) -> NamedJudge:
    """Reads MODEL[:PROMPT][@SCALE]. Names of models may have a colon or an at sign of their own.

    Raises ValueError, a sentence.
    """
    scaled = _SCALED.fullmatch(text)
    named, scale = scaled.groups() if scaled else (text, "")
    model, colon, prompt = named.rpartition(":")
    if not colon:
        model, prompt = named, ""
    if not model or (colon and not prompt):
        raise ValueError(
            f"{text!r:.200} is no judge: write it as MODEL, MODEL:PROMPT or MODEL:PROMPT@SCALE, such as"
            " openai/gpt-4.1:helpfulness@1-5"
        )
    return NamedJudge(model, prompt, scale)


def judge_in_words(model: str, prompt: str, scale: str) -> str:
    """What `read_judge` reads. A model whose name has a colon needs its prompt beside it."""
    prompt = prompt or (DEFAULT_PROMPT if ":" in model else "")
    return model + (f":{prompt}" if prompt else "") + (f"@{scale}" if scale else "")
