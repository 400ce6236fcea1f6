"""Reads responses of OpenAI-compatible servers: answers, streams, errors, log-probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from services.worker.engines import engine
from services.worker.engines.http.errors import (
    Meaning,
    SaidError,
    read_error_body,
    read_status,
    says_too_long,
)
from services.worker.engines.http.event_stream import ServerSentEvents, StreamEvent
from services.worker.engines.http.responses import BrokenOff, StreamedText
from services.worker.engines.json_values import (
    Json,
    object_of,
    objects_of,
    read_document,
    text_of,
    tokens_of,
    word_of,
)

_TOO_LONG_CODES = frozenset({"context_length_exceeded", "string_above_max_length"})
_STATUSES = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "invalid_request_error": 400,
    "BadRequestError": 400,
    "authentication_error": 401,
    "not_found_error": 404,
}
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"})


def read_error(body: bytes) -> SaidError:
    fields, message = read_error_body(body)
    return SaidError(message, _meaning(str(fields.get("code") or fields.get("type") or ""), message))


def status_of_error(document: Json) -> int:
    """Of one in the middle of a stream: some servers give the status as the code, others only a word."""
    fields = object_of(document.get("error")) or document
    status = read_status(fields.get("code"))
    if status is not None:
        return status
    words = [text_of(fields.get(name)) for name in ("code", "type")]
    if not _FILTER_CODES.isdisjoint(words):
        return 400
    return next((_STATUSES[word] for word in words if word in _STATUSES), 500)


def _meaning(code: str, message: str) -> Meaning | None:
    if code == "insufficient_quota":
        return Meaning.NO_CREDIT
    if code in _TOO_LONG_CODES or says_too_long(message):
        return Meaning.TOO_LONG
    return Meaning.FILTERED if code in _FILTER_CODES else None


# The server, and not the model, ended the answer: so say vLLM, SGLang and OpenRouter, TensorRT-LLM, DeepSeek.
_BREAKS = frozenset({"error", "abort", "timeout", "cancelled", "insufficient_system_resource"})
# What is near to certain may be rounded to a little more than that.
_MOST_LOGPROB = 1e-3
# What is kept of every answer.
_TEXT_FIELDS = frozenset({"role", "content"})


def read_choices(document: Json) -> Sequence[Json]:
    choices = document.get("choices")
    if not isinstance(choices, list) or not choices or not all(isinstance(each, dict) for each in choices):
        raise engine.ProviderFailed("The server's answer holds no choices.")
    return choices


def read_generated(document: Json, *, is_chat: bool, is_row: bool = False) -> engine.Generated:
    """An empty text is an answer; so is a chat message without one, where the server says why it has none.

    Of a row of a data set the whole answer is kept where it is more than a text.
    """
    choices = read_choices(document)
    choice = choices[0]
    finish_reason = word_of(choice.get("finish_reason"))
    text = _chattext_of(choice, finish_reason) if is_chat else choice.get("text")
    if finish_reason == "content_filter":
        raise engine.RequestRefused("The server's content filter withheld the answer, or a part of it.")
    if finish_reason in _BREAKS:
        raise engine.ProviderFailed(f"The server broke off its answer ({finish_reason}).")
    if not isinstance(text, str):
        raise engine.ProviderFailed("The server's answer holds no text.")
    is_kept = is_row and (len(choices) > 1 or _says_more(choice))
    body_json = orjson.dumps(document).decode() if is_kept else ""
    return engine.Generated(text, finish_reason, read_usage(document), engine.Timing(), body_json)


def _chattext_of(choice: Json, finish_reason: str) -> object:
    """A tool call or a refusal has no content, which is an empty answer; half a message is none."""
    message = choice.get("message")
    if not isinstance(message, dict):
        raise engine.ProviderFailed("The server's answer holds no message.")
    is_complete = bool(finish_reason or message.get("tool_calls") or message.get("refusal"))
    return "" if message.get("content") is None and is_complete else message.get("content")


def _says_more(choice: Json) -> bool:
    """Such as calls of tools, a refusal, what was reasoned, log-probabilities."""
    said = object_of(choice.get("message"))
    return any(value for name, value in said.items() if name not in _TEXT_FIELDS) or bool(
        choice.get("logprobs") or choice.get("prompt_logprobs")
    )


def read_usage(document: Json) -> engine.Usage:
    """Most count what was reasoned among what was generated; xAI counts it apart, which the total tells."""
    usage = document.get("usage")
    if not isinstance(usage, dict):
        return engine.Usage()
    prompt_details = object_of(usage.get("prompt_tokens_details"))
    completion_details = object_of(usage.get("completion_tokens_details"))
    prompt, completion = tokens_of(usage.get("prompt_tokens")), tokens_of(usage.get("completion_tokens"))
    reasoning = tokens_of(completion_details.get("reasoning_tokens"))
    is_apart = tokens_of(usage.get("total_tokens")) == prompt + completion + reasoning
    return engine.Usage(
        prompt_tokens=prompt,
        completion_tokens=completion + reasoning if is_apart else completion,
        cached_tokens=tokens_of(prompt_details.get("cached_tokens")),
        reasoning_tokens=reasoning,
    )


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
    if not all(_is_logprob(values[index]) for index in scored):
        raise ValueError("some are no log-probabilities")
    return engine.ChoiceScore(
        logprob=math.fsum(values[index] for index in scored),
        is_greedy=all(values[i] >= max((tops[i] or {}).values(), default=-math.inf) for i in scored),
        token_count=len(scored),
    )


def _is_logprob(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value <= _MOST_LOGPROB


# The tokens are counted in an event of their own, which is sent only when asked for.
STREAM_FIELDS: Json = {"stream": True, "stream_options": {"include_usage": True}}
_END = b"[DONE]"
# Servers differ in how they name what a model thought.
_THOUGHTS = ("reasoning_content", "reasoning")
# What may stand in place of a content.
_INSTEAD = ("tool_calls", "refusal")


class OpenAIStream:
    ends_with_body = False

    def __init__(self, *, is_chat: bool) -> None:
        self.reader = ServerSentEvents()
        self.has_begun = False
        self.shows_thoughts = False
        self.is_whole = False
        self._is_chat = is_chat
        self._text = StreamedText()
        self._choice: Json | None = None
        self._instead: Json = {}
        self._usage: Json | None = None

    def add(self, event: StreamEvent) -> None:
        if event.data.strip() == _END:
            self.is_whole = True
            return
        chunk = read_document(event.data)
        if chunk.get("error") or chunk.get("object") == "error" or event.name == "error":
            raise BrokenOff(status_of_error(chunk), event.data)
        if isinstance(chunk.get("usage"), dict):
            self._usage = chunk["usage"]
        for choice in objects_of(chunk.get("choices")):
            if not choice.get("index"):
                self._add_choice(choice)

    def _add_choice(self, choice: Json) -> None:
        self._choice = self._choice or {}
        if choice.get("finish_reason"):
            self._choice["finish_reason"] = choice["finish_reason"]
        if not self._is_chat:
            self.has_begun |= self._text.add(choice.get("text"))
            return
        delta = object_of(choice.get("delta"))
        says = self._text.add(delta.get("content"))
        thinks = any(text_of(delta.get(name)) for name in _THOUGHTS)
        instead = {name: delta[name] for name in _INSTEAD if delta.get(name)}
        self._instead |= instead
        self.shows_thoughts |= thinks
        self.has_begun |= says or thinks or bool(instead)

    def document(self) -> Json:
        if self._choice is None:
            return {"choices": []}
        text = self._text.text
        said = {"message": {"content": text, **self._instead}} if self._is_chat else {"text": text}
        return {"choices": [self._choice | said], "usage": self._usage}
