"""Reads responses of the Messages API: answers, streams, errors, models."""

from proctor.values.outcome import Answer
from proctor.values.plain import Json
from proctor.values.providers.models import ModelInfo
from proctor.values.usage import TokenUsage
from services.worker.engines.errors import ProviderFailed, RequestRefused
from services.worker.engines.http.error_bodies import parse_error_body, refuse_error_event
from services.worker.engines.http.error_responses import ErrorMeaning, ProviderError
from services.worker.engines.http.error_texts import is_too_long
from services.worker.engines.http.event_stream import ServerSentEvents, StreamedText, StreamEvent
from services.worker.engines.http.usage import anthropic_usage
from services.worker.engines.parsed_json import (
    count_of,
    moment_of,
    object_of,
    objects_of,
    read_document,
    text_of,
    word_of,
)
from services.worker.engines.tool_calls import new_call, with_calls

_MEANINGS = {"billing_error": ErrorMeaning.NO_CREDIT, "request_too_large": ErrorMeaning.TOO_LONG}
_THOUGHTS = ("thinking", "redacted_thinking")
_FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


def parse_error(body: bytes) -> ProviderError:
    fields, message = parse_error_body(body)
    meaning = _MEANINGS.get(str(fields.get("type")))
    return ProviderError(message, ErrorMeaning.TOO_LONG if is_too_long(message) else meaning)


def read_answer(document: Json) -> tuple[Answer, TokenUsage]:
    """A refusal is a failure, whatever text precedes it; an empty content is an empty answer."""
    stop_reason = word_of(document.get("stop_reason"))
    if stop_reason == "refusal":
        raise RequestRefused(f"The provider refused to answer{_refusal(document)}.")
    # A message without a reason was cut off, whatever text it has.
    if not stop_reason or not isinstance(document.get("content"), list):
        raise ProviderFailed("The server's answer holds no content.")
    blocks = objects_of(document.get("content"))
    text = "".join(text_of(block.get("text")) for block in blocks if block.get("type") == "text")
    thoughts = [block for block in blocks if block.get("type") in _THOUGHTS]
    answer = Answer(
        text,
        _FINISH_REASONS.get(stop_reason, stop_reason),
        reasoning="".join(text_of(block.get("thinking")) for block in thoughts),
    )
    usage = anthropic_usage(document)
    calls = [new_call(block, block.get("input")) for block in blocks if block.get("type") == "tool_use"]
    kept = {"thinking_blocks": thoughts} if thoughts else {}
    return with_calls(answer, usage, calls, text_of(document.get("model")), kept), usage


def _refusal(document: Json) -> str:
    category = word_of(object_of(document.get("stop_details")).get("category"))
    return f" (category {category})" if category else ""


def read_model(listed: Json) -> ModelInfo:
    return ModelInfo(
        text_of(listed.get("id")),
        context_tokens=count_of(listed.get("max_input_tokens")) or None,
        created_at=moment_of(listed.get("created_at")),
    )


class AnthropicStream:
    """Assembles a streamed message. Events of unknown types, such as pings, are skipped."""

    ends_with_body = False

    def __init__(self) -> None:
        self.reader = ServerSentEvents()
        self.text = StreamedText()
        self.is_whole = False
        self._ending: Json = {}
        self._usage: Json = {}

    def add(self, event: StreamEvent) -> None:
        document = read_document(event.data)
        match document.get("type"):
            case "error":
                refuse_error_event(document, is_named=True)
            case "message_start":
                self._add_usage(object_of(document.get("message")))
            case "content_block_start":
                self._add_part(object_of(document.get("content_block")))
            case "content_block_delta":
                self._add_part(object_of(document.get("delta")))
            case "message_delta":
                self._ending |= object_of(document.get("delta"))
                self._add_usage(document)
            case "message_stop":
                self.is_whole = True

    def _add_part(self, part: Json) -> None:
        """A block at its start, or an addition to it: text, reasoning, or neither (a signature)."""
        self.text.add(part.get("text"))
        self.text.add_reasoning(text_of(part.get("thinking")))
        self.text.has_begun |= bool(part.get("partial_json"))

    def _add_usage(self, holder: Json) -> None:
        """The final counts are those of the whole message; counts absent there came at its start."""
        usage = object_of(holder.get("usage"))
        self._usage |= {name: value for name, value in usage.items() if value is not None}

    def document(self) -> Json:
        thoughts = [{"type": "thinking", "thinking": self.text.reasoning}] if self.text.reasoning else []
        said = [{"type": "text", "text": self.text.whole}] if self.text.whole else []
        return self._ending | {"content": thoughts + said, "usage": self._usage}
