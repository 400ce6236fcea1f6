"""How the model server of the tests replies where it is given options: by a hash of what it was asked."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import orjson

_OPTIONS = re.compile(r"one of these options.*?:\n((?:- .*\n)+)")
_FREE_ANSWERS = ("{}", "The answer is {}.", "I cannot tell.")


def constrained_reply(body: dict[str, Any], prompt: str) -> str | None:
    """One of the texts that the request allows, by whichever of the three fields; None without any."""
    if "structured_outputs" in body:
        return one_of(body["structured_outputs"]["choice"], prompt)
    if "guided_choice" in body:
        return one_of(body["guided_choice"], prompt)
    if "response_format" in body:
        texts = body["response_format"]["json_schema"]["schema"]["properties"]["answer"]["enum"]
        return orjson.dumps({"answer": one_of(texts, prompt)}).decode()
    return None


def free_reply(prompt: str) -> str | None:
    """Words that hold one of the options that the prompt names, or none of them; None without options."""
    named = _OPTIONS.search(prompt)
    if named is None:
        return None
    texts = [line.removeprefix("- ") for line in named[1].splitlines()]
    return one_of(_FREE_ANSWERS, f"{prompt} words").format(one_of(texts, prompt))


def one_of(texts: Sequence[str], prompt: str) -> str:
    return texts[int(hashlib.sha256(prompt.encode()).hexdigest(), 16) % len(texts)]
