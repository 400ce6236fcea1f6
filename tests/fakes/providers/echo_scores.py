"""Log-probabilities of echo scoring: a hash of the text alone, so that a test can compute every figure."""

import hashlib
import re
from typing import Any

_TOKEN = re.compile(r"\s*\S+|\s+$")


def token_logprob(context: str, token: str) -> float:
    """The scheme of the reference scores: a function of (context, continuation) alone, 0 to -9.99."""
    return -(int(hashlib.sha256(f"{context}\0{token}".encode()).hexdigest(), 16) % 1000) / 100


def split_tokens(text: str, continuations: tuple[str, ...]) -> list[str]:
    """A word with the space before it is a token; a known continuation at the end of the text is one."""
    known = max((c for c in continuations if text.endswith(c)), key=len, default="")
    head = text[: len(text) - len(known)]
    return _TOKEN.findall(head) + ([known] if known else [])


def echo_logprobs(text: str, continuations: tuple[str, ...], salt: str = "") -> dict[str, Any]:
    """Greedy tokens (above -1) head their own top_logprobs; the others are beaten by a made-up word."""
    tokens = split_tokens(text, continuations)
    offsets: list[int] = []
    logprobs: list[float | None] = []
    tops: list[dict[str, float] | None] = []
    start = 0
    for token in tokens:
        value = token_logprob(salt + text[:start], token)
        offsets.append(start)
        logprobs.append(value if start else None)
        tops.append(({token: value} if value > -1 else {"<likelier>": -0.001}) if start else None)
        start += len(token)
    return {"tokens": tokens, "token_logprobs": logprobs, "top_logprobs": tops, "text_offset": offsets}
