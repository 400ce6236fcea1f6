"""Reads responses of generateContent: answers, streams, errors, models."""

from collections.abc import Mapping

from proctor.values.outcome import Answer
from proctor.values.plain import Json
from proctor.values.providers.models import ModelInfo
from proctor.values.usage import TokenUsage
from services.worker.engines.errors import ProviderFailed, RequestRefused
from services.worker.engines.http.error_bodies import parse_error_body, refuse_error_event
from services.worker.engines.http.error_responses import ErrorMeaning, ProviderError, within_a_day
from services.worker.engines.http.error_texts import is_too_long
from services.worker.engines.http.event_stream import ServerSentEvents, StreamedText, StreamEvent
from services.worker.engines.http.usage import gemini_usage
from services.worker.engines.parsed_json import (
    count_of,
    object_of,
    objects_of,
    read_document,
    text_of,
    word_of,
)
from services.worker.engines.tool_calls import ToolCall, new_call, with_calls

_KEY_REASONS = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_SERVICE_BLOCKED"})
_FINISH_REASONS = {"STOP": "stop", "MAX_TOKENS": "length"}
# Its text is in the answer, its call is not.
_WRONG_CALLS = {"MALFORMED_FUNCTION_CALL": "stop", "UNEXPECTED_TOOL_CALL": "stop"}
_BLOCKS = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "ESCALATION",
        "MODEL_ARMOR",
    }
)


def parse_error(body: bytes) -> ProviderError:
    fields, message = parse_error_body(body)
    details = objects_of(fields.get("details"))
    return ProviderError(message, _meaning(details, message), _retry_delay(details))


def _meaning(details: list[Json], message: str) -> ErrorMeaning | None:
    if any(each.get("reason") in _KEY_REASONS for each in details):
        return ErrorMeaning.WRONG_KEY
    return ErrorMeaning.TOO_LONG if is_too_long(message) else None


def _retry_delay(details: list[Json]) -> float | None:
    """The duration "34.5s" of a google.rpc.RetryInfo."""
    delays = [text_of(each.get("retryDelay")) for each in details if each.get("retryDelay")]
    try:
        return within_a_day(float(delays[0].removesuffix("s"))) if delays else None
    except ValueError:
        return None


def read_tool_answer(document: Json) -> tuple[Answer, TokenUsage]:
    """Reads the answer to a request with tools: a call in the wrong form is the model's own mistake."""
    return read_answer(document, {**_FINISH_REASONS, **_WRONG_CALLS})


def read_answer(document: Json, finish_reasons: Mapping[str, str] | None = None) -> tuple[Answer, TokenUsage]:
    """A stop without a text is an empty answer; a blocked or broken answer is none, even with a text."""
    known = finish_reasons or _FINISH_REASONS
    blocked = word_of(object_of(document.get("promptFeedback")).get("blockReason"))
    if blocked:
        raise RequestRefused(f"The provider blocked the prompt ({blocked}).")
    candidates = objects_of(document.get("candidates"))
    reason = word_of(candidates[0].get("finishReason")) if candidates else ""
    if not reason:
        raise ProviderFailed("The server's answer holds no finished candidate.")
    if reason in _BLOCKS:
        raise RequestRefused(f"The provider withheld the answer ({reason}).")
    if reason not in known:
        raise ProviderFailed(f"The provider broke off its answer ({reason}).")
    content = object_of(candidates[0].get("content"))
    text, thoughts = _text(content), _text(content, is_thought=True)
    answer, usage = Answer(text, known[reason], reasoning=thoughts), gemini_usage(document)
    return with_calls(answer, usage, _calls(content), text_of(document.get("modelVersion"))), usage


def _calls(content: Json) -> list[ToolCall]:
    """A signature is kept where Google's own form of the OpenAI protocol has it."""
    calls: list[ToolCall] = []
    for part in objects_of(content.get("parts")):
        if not part.get("functionCall"):
            continue
        function = object_of(part.get("functionCall"))
        signature = text_of(part.get("thoughtSignature"))
        extra: Json = {"extra_content": {"google": {"thought_signature": signature}}} if signature else {}
        calls.append(new_call(function, function.get("args"), extra))
    return calls


def signature_of(extra: Json) -> str:
    return text_of(object_of(object_of(extra.get("extra_content")).get("google")).get("thought_signature"))


def _text(content: Json, *, is_thought: bool = False) -> str:
    listed = objects_of(content.get("parts"))
    parts = [part for part in listed if (part.get("thought") is True) is is_thought]
    return "".join(text_of(part.get("text")) for part in parts)


def generates(listed: Json) -> bool:
    methods = listed.get("supportedGenerationMethods")
    return isinstance(methods, list) and "generateContent" in methods


def read_model(listed: Json) -> ModelInfo:
    name = text_of(listed.get("name")).removeprefix("models/")
    return ModelInfo(name, context_tokens=count_of(listed.get("inputTokenLimit")) or None)


class GeminiStream:
    ends_with_body = True

    def __init__(self) -> None:
        self.reader = ServerSentEvents()
        self.text = StreamedText()
        self._finish_reason = ""
        # Fields that each event repeats: the last one counts.
        self._latest: Json = {}

    @property
    def is_whole(self) -> bool:
        """A candidate names its finish reason; for a blocked prompt there is no candidate."""
        return bool(self._finish_reason or object_of(self._latest.get("promptFeedback")).get("blockReason"))

    def add(self, event: StreamEvent) -> None:
        chunk = read_document(event.data)
        refuse_error_event(chunk)
        self._latest |= {name: chunk[name] for name in ("promptFeedback", "usageMetadata") if chunk.get(name)}
        for candidate in objects_of(chunk.get("candidates")):
            # The first candidate has the index 0, or none at all.
            if not candidate.get("index"):
                self._add_candidate(candidate)

    def _add_candidate(self, candidate: Json) -> None:
        self._finish_reason = text_of(candidate.get("finishReason")) or self._finish_reason
        for part in objects_of(object_of(candidate.get("content")).get("parts")):
            if part.get("thought") is True:
                self.text.add_reasoning(text_of(part.get("text")))
            else:
                self.text.add(part.get("text"))

    def document(self) -> Json:
        candidate: Json = {"finishReason": self._finish_reason}
        thoughts = [{"text": self.text.reasoning, "thought": True}] if self.text.reasoning else []
        said = [{"text": self.text.whole}] if self.text.whole else []
        candidate["content"] = {"parts": thoughts + said}
        return self._latest | {"candidates": [candidate] if self._finish_reason else []}
