"""Reads what an OpenAI-compatible server answers: texts, usage, log-probabilities of an echoed prompt."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from services.worker import engine

Json = dict[str, Any]

_LARGEST_COUNT = 2**63 - 1


def read_document(body: bytes) -> Json:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise engine.ProviderFailed("The server's answer is no valid JSON, perhaps cut off.") from error
    if not isinstance(document, dict):
        raise engine.ProviderFailed("The server's answer is no JSON object.")
    return document


def read_choices(document: Json) -> Sequence[Json]:
    choices = document.get("choices")
    if not isinstance(choices, list) or not choices or not all(isinstance(each, dict) for each in choices):
        raise engine.ProviderFailed("The server's answer holds no choices.")
    return choices


def read_generated(document: Json, *, is_chat: bool, total_seconds: float) -> engine.Generated:
    """An empty text is an answer; so is a chat message without one, where the server says why it has none."""
    choice = read_choices(document)[0]
    finish_reason = _text(choice.get("finish_reason"))
    text = _chat_text(choice, finish_reason) if is_chat else choice.get("text")
    if finish_reason == "content_filter" and not text:
        raise engine.RequestRefused("The server's content filter withheld the answer.")
    if not isinstance(text, str):
        raise engine.ProviderFailed("The server's answer holds no text.")
    timing = engine.Timing(total_seconds=total_seconds)
    return engine.Generated(text, finish_reason, read_usage(document), timing)


def _chat_text(choice: Json, finish_reason: str) -> object:
    """A tool call or a refusal has no content, which is an empty answer; half a message is none."""
    message = choice.get("message")
    if not isinstance(message, dict):
        raise engine.ProviderFailed("The server's answer holds no message.")
    is_complete = bool(finish_reason or message.get("tool_calls") or message.get("refusal"))
    return "" if message.get("content") is None and is_complete else message.get("content")


def read_usage(document: Json) -> engine.Usage:
    usage = document.get("usage")
    if not isinstance(usage, dict):
        return engine.Usage()
    prompt_details = _object(usage.get("prompt_tokens_details"))
    completion_details = _object(usage.get("completion_tokens_details"))
    return engine.Usage(
        prompt_tokens=read_count(usage.get("prompt_tokens")),
        completion_tokens=read_count(usage.get("completion_tokens")),
        cached_tokens=read_count(prompt_details.get("cached_tokens")),
        reasoning_tokens=read_count(completion_details.get("reasoning_tokens")),
    )


def read_count(value: object) -> int:
    """A whole number from 0 on that a message can hold; 0 for anything else a server may say."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 <= value <= _LARGEST_COUNT else 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class EchoedPrompt:
    """Where the continuation stands in the echoed text, in characters."""

    begin: int
    end: int


def read_choice_score(choice: Json, span: EchoedPrompt) -> engine.ChoiceScore:
    """Sums the tokens that begin inside the continuation; context stands before, what was generated after."""
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict) or not logprobs.get("token_logprobs"):
        raise engine.UnsupportedRequest(
            "The server gives no log-probabilities of an echoed prompt; order the task as generation instead."
        )
    try:
        return _sum_tokens(logprobs, span)
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise engine.ProviderFailed("The server's log-probabilities cannot be read.") from error


def _sum_tokens(logprobs: Mapping[str, Any], span: EchoedPrompt) -> engine.ChoiceScore:
    offsets, values = logprobs["text_offset"], logprobs["token_logprobs"]
    tops = logprobs.get("top_logprobs") or [None] * len(values)
    scored = [index for index, offset in enumerate(offsets) if span.begin <= offset < span.end]
    if not scored:
        raise engine.ProviderFailed("No token of the echoed prompt begins inside the choice.")
    return engine.ChoiceScore(
        logprob=math.fsum(values[index] for index in scored),
        is_greedy=all(values[i] >= max((tops[i] or {}).values(), default=-math.inf) for i in scored),
        token_count=len(scored),
    )
