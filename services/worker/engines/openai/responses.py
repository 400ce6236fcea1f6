"""Reads responses of OpenAI-compatible servers: answers, streams, errors, log-probabilities."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from proctor.values.outcome import Answer, ChoiceScore
from proctor.values.plain import Json
from proctor.values.usage import TokenUsage
from services.worker.engines.errors import ProviderFailed, UnsupportedRequest
from services.worker.engines.finish_reasons import read_finish_reason, refuse_broken
from services.worker.engines.http.error_bodies import error_words, parse_error_body, refuse_error_event
from services.worker.engines.http.error_responses import SCORING_ADVICE, ErrorMeaning, ProviderError
from services.worker.engines.http.error_texts import is_too_long
from services.worker.engines.http.event_stream import ServerSentEvents, StreamedText, StreamEvent
from services.worker.engines.http.usage import openai_usage
from services.worker.engines.openai.refused_limits import refused_limits
from services.worker.engines.parsed_json import (
    count_of,
    object_of,
    objects_of,
    read_document,
    text_of,
)

# Letters of codes and types of errors, as `error_words` gives them.
_TOO_LONG_WORDS = frozenset({"contextlengthexceeded", "exceedcontextsize", "stringabovemaxlength"})
_FILTER_WORDS = frozenset({"contentfilter", "contentpolicyviolation", "responsibleaipolicyviolation"})
_CREDIT_WORDS = frozenset(
    {
        "insufficientquota",
        "insufficientcredits",
        "insufficientbalance",
        "insufficientfunds",
        "billing",
        "billingnotactive",
        "billinghardlimitreached",
    }
)
# The log-probability of a nearly certain token may be rounded to a little above 0.
_MAX_LOGPROB = 1e-3
# Usage comes in an event of its own, which is sent only on request.
STREAM_FIELDS: Json = {"stream": True, "stream_options": {"include_usage": True}}
_END = b"[DONE]"
# Servers name reasoning differently; some send it by several names.
_REASONING = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "thinking")
_REASONING_FIELDS = frozenset(_REASONING)
_REASONING_PARTS = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "reasoning_content", "reasoning_text", "summary_text"}
)
# In which a part has its text: each name may hold a text, a list of parts, or one.
_REASONING_TEXTS = ("text", *_REASONING, "summary", "content")
# Parts in parts: no server nests them deeper.
_MAX_DEPTH = 3
# Fields that may replace the content.
_INSTEAD = ("tool_calls", "refusal")


def parse_error(body: bytes) -> ProviderError:
    fields, message = parse_error_body(body)
    words = error_words(fields)
    refused = refused_limits(text_of(fields.get("param")), words, message)
    return ProviderError(message, _meaning(words, message), refused_fields=refused)


def _meaning(words: frozenset[str], message: str) -> ErrorMeaning | None:
    if words & _CREDIT_WORDS:
        return ErrorMeaning.NO_CREDIT
    if words & _TOO_LONG_WORDS or is_too_long(message):
        return ErrorMeaning.TOO_LONG
    return ErrorMeaning.FILTERED if words & _FILTER_WORDS else None


def read_choices(document: Json) -> Sequence[Json]:
    choices = document.get("choices") or []
    found = objects_of(choices)
    if not found or len(found) < len(choices):
        raise ProviderFailed("The server's answer holds no choices.")
    return found


def read_answer(document: Json, *, is_chat: bool, is_kept: bool = False) -> tuple[Answer, TokenUsage]:
    """An empty text is an answer, and so is a chat message that has no text and says why.

    Where `is_kept`, as for a row of a data set, the whole response is kept if it is more than a text.
    """
    choices = read_choices(document)
    # The protocol does not promise their order.
    choice = choices[0] if len(choices) == 1 else min(choices, key=lambda each: count_of(each.get("index")))
    finish_reason = read_finish_reason(choice.get("finish_reason"))
    # All texts are kept as one answer.
    for other in choices if len(choices) > 1 else ():
        refuse_broken(other.get("finish_reason"))
    text = _chat_text(choice, finish_reason) if is_chat else choice.get("text")
    if not isinstance(text, str):
        raise ProviderFailed("The server's answer holds no text.")
    is_kept = is_kept and (len(choices) > 1 or _is_more_than_text(choice))
    body_json = orjson.dumps(document).decode() if is_kept else ""
    reasoning = reasoning_text(object_of(choice.get("message"))) if is_chat else ""
    return Answer(text, finish_reason, (), body_json, None, None, reasoning), openai_usage(document)


def _chat_text(choice: Json, finish_reason: str) -> object:
    """A tool call or a refusal has no content: an empty answer. An incomplete message is a failure."""
    message = choice.get("message")
    if not isinstance(message, dict):
        raise ProviderFailed("The server's answer holds no message.")
    is_complete = bool(finish_reason or message.get("tool_calls") or message.get("refusal"))
    content = content_text(message.get("content"))
    return "" if content is None and is_complete else content


def content_text(content: object) -> object:
    """The text of a part or of a list of them, without those of reasoning; any other content as it is."""
    content = [content] if isinstance(content, dict) else content
    if not isinstance(content, list):
        return content
    parts = [part if isinstance(part, dict) else {"text": part} for part in content]
    return "".join(_text_in(part.get("text")) for part in parts if part.get("type") not in _REASONING_PARTS)


def _text_in(text: object) -> str:
    """Some servers write a text as an object, as OpenAI's assistants do."""
    return text_of(text) or text_of(object_of(text).get("value"))


def reasoning_text(message: Json) -> str:
    """The reasoning in a field of its own, else in the parts of the content."""
    # Most answers have none: this is asked of each.
    if not _REASONING_FIELDS.isdisjoint(message):
        for name in _REASONING:
            if (given := message.get(name)) and (text := _texts_in(given)):
                return text
    content = message.get("content")
    if isinstance(content, str):
        return ""
    parts = objects_of(content)
    return "".join([_texts_in(part) for part in parts if part.get("type") in _REASONING_PARTS])


def _texts_in(value: object, depth: int = 0) -> str:
    if isinstance(value, str):
        return value
    if depth > _MAX_DEPTH:
        return ""
    if isinstance(value, list):
        return "".join(_texts_in(part, depth + 1) for part in value)
    fields = object_of(value)
    found = (_texts_in(fields[name], depth + 1) for name in _REASONING_TEXTS if fields.get(name))
    return next((text for text in found if text), "")


def _is_more_than_text(choice: Json) -> bool:
    """Tool calls, a refusal or log-probabilities; also reasoning that is more than a text, as a signature."""
    message = object_of(choice.get("message"))
    return any(value for name, value in message.items() if not _is_text(name, value)) or bool(
        choice.get("logprobs") or choice.get("prompt_logprobs")
    )


def _is_text(name: str, value: object) -> bool:
    """Whether an answer keeps the field without its body."""
    return name in {"role", "content"} or (name in _REASONING and isinstance(value, str))


def read_choice_score(choice: Json, continuation: range) -> ChoiceScore:
    """Sums the tokens that begin inside the continuation, in characters of the echoed text."""
    read_finish_reason(choice.get("finish_reason"))
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict) or not logprobs.get("token_logprobs"):
        raise UnsupportedRequest(
            f"The server gives no log-probabilities of an echoed prompt ({SCORING_ADVICE})."
        )
    try:
        return _sum_tokens(logprobs, continuation)
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise ProviderFailed("The server's log-probabilities cannot be read.") from error


def _sum_tokens(logprobs: Mapping[str, Any], continuation: range) -> ChoiceScore:
    offsets, values = logprobs["text_offset"], logprobs["token_logprobs"]
    tops = logprobs.get("top_logprobs") or [None] * len(values)
    scored = [index for index, offset in enumerate(offsets) if offset in continuation]
    if not scored:
        raise UnsupportedRequest(
            f"No token of the echoed prompt begins inside the choice ({SCORING_ADVICE})."
        )
    if not all(_is_logprob(values[index]) for index in scored):
        raise ValueError("some are not log-probabilities")
    return ChoiceScore(
        # fsum: the sum does not depend on the order of its parts.
        logprob=math.fsum(values[index] for index in scored),
        is_greedy=all(values[i] >= max((tops[i] or {}).values(), default=-math.inf) for i in scored),
        token_count=len(scored),
    )


def _is_logprob(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value <= _MAX_LOGPROB


class OpenAIStream:
    ends_with_body = False

    def __init__(self, *, is_chat: bool) -> None:
        self.reader = ServerSentEvents()
        self.text = StreamedText()
        self.is_whole = False
        self._is_chat = is_chat
        self._choice: Json | None = None
        self._instead: Json = {}
        self._usage: Json | None = None

    def add(self, event: StreamEvent) -> None:
        if event.data.strip() == _END:
            self.is_whole = True
            return
        chunk = read_document(event.data)
        refuse_error_event(chunk, is_named=event.name == "error")
        if isinstance(chunk.get("usage"), dict):
            self._usage = chunk["usage"]
        for choice in objects_of(chunk.get("choices")):
            if not choice.get("index"):
                self._add_choice(choice)

    def _add_choice(self, choice: Json) -> None:
        self._choice = self._choice or {}
        if choice.get("finish_reason"):
            self._choice["finish_reason"] = choice["finish_reason"]
            self.text.has_ended = True
        if not self._is_chat:
            self.text.add(choice.get("text"))
            return
        delta = object_of(choice.get("delta"))
        if not delta and (message := object_of(choice.get("message"))) and not self.text.whole:
            # The answer in one piece; behind deltas it repeats them.
            delta = message
        self.text.add(content_text(delta.get("content")))
        self.text.add_reasoning(reasoning_text(delta))
        self._instead |= {name: delta[name] for name in _INSTEAD if delta.get(name)}
        self.text.has_begun |= bool(self._instead)

    def document(self) -> Json:
        if self._choice is None:
            return {"choices": []}
        text = self.text.whole
        if not self._is_chat:
            return {"choices": [self._choice | {"text": text}], "usage": self._usage}
        reasoning = {"reasoning_content": self.text.reasoning} if self.text.reasoning else {}
        message = {"content": text, **reasoning, **self._instead}
        return {"choices": [self._choice | {"message": message}], "usage": self._usage}
