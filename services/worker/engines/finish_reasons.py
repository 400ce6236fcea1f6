"""Why an answer ended, in the words of many servers: finished, cut by its length, withheld or broken off."""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from services.worker.engines.errors import ProviderFailed, RequestRefused
from services.worker.engines.parsed_json import word_of

_NOT_LETTERS = re.compile(r"[^a-z]+")
# Words of servers and proxies, only their letters and in lower case, for two words of the protocol.
_WORDS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("stop", "eos", "eostoken", "endturn", "endoftext", "stopsequence", "complete"), "stop")
    | dict.fromkeys(
        (
            "length",
            "maxtokens",
            "maxoutputtokens",
            "maxlength",
            "modellength",
            "maxcontextlength",
            "modelcontextwindowexceeded",
            "contextlength",
        ),
        "length",
    )
)
# The server ended the answer, not the model: vLLM, SGLang, OpenRouter, TensorRT-LLM, DeepSeek, Z.ai, Cohere.
# Ollama loads or unloads a model instead of answering.
_BROKEN = frozenset(
    {
        "error",
        "errored",
        "servererror",
        "internalerror",
        "enginefailure",
        "networkerror",
        "upstreamerror",
        "failed",
        "failure",
        "fail",
        "abort",
        "aborted",
        "interrupted",
        "timeout",
        "timelimit",
        "deadlineexceeded",
        "cancel",
        "cancelled",
        "canceled",
        "usercancel",
        "preempted",
        "evicted",
        "outofmemory",
        "overloaded",
        "insufficientsystemresource",
        "malformedresponse",
        "load",
        "unload",
    }
)
_WITHHELD = frozenset(
    {
        "contentfilter",
        "contentfiltered",
        "contentpolicyviolation",
        "guardrailintervened",
        "moderation",
        "sensitive",
        "safety",
        "recitation",
        "language",
        "blocklist",
        "prohibitedcontent",
        "spii",
        "errortoxic",
        "refusal",
    }
)


def read_finish_reason(value: object) -> str:
    """The protocol's word where there is one, else the server's; raises for a withheld or broken answer."""
    return _read(_word(value))


def refuse_broken(value: object) -> None:
    """Raises where the server or its engine ended the answer, and not the model."""
    reason = _word(value)
    _refuse_broken(reason, _letters(reason))


def _refuse_broken(reason: str, letters: str) -> None:
    if letters in _BROKEN:
        raise ProviderFailed(f"The server broke off its answer ({reason}).")


def _word(value: object) -> str:
    """SGLang's own form has the word in an object, as its `type`."""
    return word_of(value.get("type") if isinstance(value, dict) else value)


# Few words come back for millions of answers.
@lru_cache(maxsize=256)
def _read(reason: str) -> str:
    letters = _letters(reason)
    if letters in _WITHHELD:
        raise RequestRefused(f"The server's content filter withheld the answer, or a part of it ({reason}).")
    _refuse_broken(reason, letters)
    return _WORDS.get(letters, reason)


def _letters(reason: str) -> str:
    return _NOT_LETTERS.sub("", reason.lower())
