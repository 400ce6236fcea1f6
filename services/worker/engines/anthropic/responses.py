"""Reads responses of the Messages API: answers, streams, errors, models."""

from __future__ import annotations

from services.worker.engines import engine
from services.worker.engines.http.errors import Meaning, SaidError, read_error_body, says_too_long
from services.worker.engines.http.event_stream import ServerSentEvents, StreamEvent
from services.worker.engines.http.responses import BrokenOff, StreamedText
from services.worker.engines.json_values import (
    Json,
    count_of,
    object_of,
    objects_of,
    read_document,
    text_of,
    tokens_of,
    word_of,
)

_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_MEANINGS = {"billing_error": Meaning.NO_CREDIT, "request_too_large": Meaning.TOO_LONG}


def read_error(body: bytes) -> SaidError:
    fields, message = read_error_body(body)
    meaning = _MEANINGS.get(str(fields.get("type")))
    return SaidError(message, Meaning.TOO_LONG if says_too_long(message) else meaning)


def status_of_error(document: Json) -> int:
    """The status that the type of an error comes with, for one in the middle of a stream."""
    return _STATUSES.get(text_of(object_of(document.get("error")).get("type")), 500)


_FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


def read_generated(document: Json) -> engine.Generated:
    """A refusal is no answer, whatever was said before it; an empty content is an empty answer."""
    stop_reason = word_of(document.get("stop_reason"))
    if stop_reason == "refusal":
        raise engine.RequestRefused(f"The provider refused to answer{_refusal(document)}.")
    if not stop_reason or not isinstance(document.get("content"), list):
        raise engine.ProviderFailed("The server's answer holds no content.")
    blocks = objects_of(document.get("content"))
    text = "".join(text_of(block.get("text")) for block in blocks if block.get("type") == "text")
    finish_reason = _FINISH_REASONS.get(stop_reason, stop_reason)
    return engine.Generated(text, finish_reason, _usage(object_of(document.get("usage"))), engine.Timing())


def _refusal(document: Json) -> str:
    category = word_of(object_of(document.get("stop_details")).get("category"))
    return f" (category {category})" if category else ""


def _usage(usage: Json) -> engine.Usage:
    """What was read from and written to the cache is counted apart from the other input."""
    cached = tokens_of(usage.get("cache_read_input_tokens"))
    written = tokens_of(usage.get("cache_creation_input_tokens"))
    return engine.Usage(
        prompt_tokens=tokens_of(usage.get("input_tokens")) + cached + written,
        completion_tokens=tokens_of(usage.get("output_tokens")),
        cached_tokens=cached,
        reasoning_tokens=tokens_of(object_of(usage.get("output_tokens_details")).get("thinking_tokens")),
    )


def read_model(listed: Json, provider: str, capabilities: engine.EngineCapabilities) -> engine.ModelInfo:
    context_length = count_of(listed.get("max_input_tokens")) or None
    return engine.ModelInfo(f"{provider}/{text_of(listed.get('id'))}", capabilities, context_length)


class AnthropicStream:
    """Events of a kind that is not known here, such as a ping, are passed over, as the provider asks for."""

    ends_with_body = False

    def __init__(self) -> None:
        self.reader = ServerSentEvents()
        self.has_begun = False
        self.shows_thoughts = False
        self.is_whole = False
        self._text = StreamedText()
        self._ending: Json = {}
        self._usage: Json = {}

    def add(self, event: StreamEvent) -> None:
        document = read_document(event.data)
        match document.get("type"):
            case "error":
                raise BrokenOff(status_of_error(document), event.data)
            case "message_start":
                self._count(object_of(document.get("message")))
            case "content_block_start":
                self._add_part(object_of(document.get("content_block")))
            case "content_block_delta":
                self._add_part(object_of(document.get("delta")))
            case "message_delta":
                self._ending |= object_of(document.get("delta"))
                self._count(document)
            case "message_stop":
                self.is_whole = True

    def _add_part(self, part: Json) -> None:
        """A block at its start or what is added to it: only text is said, a signature is nothing."""
        thinks = bool(text_of(part.get("thinking")))
        self.shows_thoughts |= thinks
        self.has_begun |= self._text.add(part.get("text")) or thinks or bool(part.get("partial_json"))

    def _count(self, told: Json) -> None:
        """The counts of the end are those of the whole; what it does not name was told at the start."""
        usage = object_of(told.get("usage"))
        self._usage |= {name: value for name, value in usage.items() if value is not None}

    def document(self) -> Json:
        content = [{"type": "text", "text": self._text.text}] if self._text.text else []
        return self._ending | {"content": content, "usage": self._usage}
