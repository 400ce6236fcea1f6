"""Reads responses of Ollama: answers, streams, models."""

from proctor.values.outcome import Answer
from proctor.values.plain import Json
from proctor.values.providers.models import ModelInfo
from proctor.values.usage import TokenUsage
from services.worker.engines.engine import AttentionShape
from services.worker.engines.errors import ProviderFailed
from services.worker.engines.finish_reasons import read_finish_reason
from services.worker.engines.http.error_bodies import refuse_error_event
from services.worker.engines.http.event_stream import JsonLines, StreamedText, StreamEvent
from services.worker.engines.http.usage import ollama_usage
from services.worker.engines.parsed_json import (
    count_of,
    moment_of,
    object_of,
    objects_of,
    read_choice,
    read_document,
    text_of,
)
from services.worker.engines.tool_calls import ToolCall, new_call, with_calls

# Ollama's default context, and its bytes for a key or value.
_DEFAULT_CONTEXT = 4096
_CACHE_VALUE_BYTES = 2
_SHAPE = (
    "block_count",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "embedding_length",
)


def is_generative(shown: Json) -> bool:
    """True where the server is too old to list capabilities."""
    capabilities = shown.get("capabilities")
    return not isinstance(capabilities, list) or "completion" in capabilities


def read_loaded(running: Json) -> dict[str, int]:
    """Loaded models to the bytes that each takes now, context included."""
    models = objects_of(running.get("models"))
    return {text_of(each.get("model")): count_of(each.get("size")) for each in models}


def read_model(tag: Json, shown: Json, loaded: dict[str, int]) -> ModelInfo:
    """The name lacks its provider. `shown` is empty where the server gave no details."""
    name, size = text_of(tag.get("model")), count_of(tag.get("size"))
    facts = _facts(shown)
    return ModelInfo(
        name,
        context_tokens=facts.get("context_length") or None,
        size_bytes=size or None,
        memory_bytes=loaded.get(name) or _memory_need(size, facts),
        quantization=text_of(object_of(tag.get("details")).get("quantization_level")),
        is_loaded=name in loaded,
        created_at=moment_of(tag.get("modified_at")),
    )


def _memory_need(size: int, facts: dict[str, int]) -> int | None:
    """Weights and the cache of the default context; None where the shape is unknown."""
    shape = AttentionShape(*(facts.get(name, 0) for name in _SHAPE))
    context = min(facts.get("context_length") or _DEFAULT_CONTEXT, _DEFAULT_CONTEXT)
    cache_bytes = shape.cache_bytes(context, _CACHE_VALUE_BYTES)
    return size + cache_bytes if size and cache_bytes else None


def _facts(shown: Json) -> dict[str, int]:
    """The model's own numbers, whose names begin with its architecture."""
    info = object_of(shown.get("model_info"))
    prefix = f"{text_of(info.get('general.architecture'))}."
    counted = ((name.removeprefix(prefix), count_of(info[name])) for name in info if name.startswith(prefix))
    return {name: count for name, count in counted if count}


def read_answer(document: Json, *, is_json: bool) -> tuple[Answer, TokenUsage]:
    """Reads a chat or a completion; `is_json` where the answer was constrained to given texts."""
    if document.get("done") is not True:
        raise ProviderFailed("The server's answer ends before the model was done.")
    holder = object_of(document.get("message")) if "message" in document else document
    text = holder.get("content" if "message" in document else "response")
    if not isinstance(text, str):
        raise ProviderFailed("The server's answer holds no text.")
    thinking = text_of(holder.get("thinking"))
    shown = read_choice(text) if is_json else text
    answer = Answer(shown, read_finish_reason(document.get("done_reason")), reasoning=thinking)
    usage = ollama_usage(document)
    kept = {"reasoning_content": thinking} if thinking else {}
    return with_calls(answer, usage, _calls(holder), text_of(document.get("model")), kept), usage


def _calls(message: Json) -> list[ToolCall]:
    functions = [(each, object_of(each.get("function"))) for each in objects_of(message.get("tool_calls"))]
    return [
        new_call({"id": each.get("id"), "name": function.get("name")}, function.get("arguments"))
        for each, function in functions
    ]


class OllamaStream:
    ends_with_body = False

    def __init__(self, *, is_chat: bool) -> None:
        self.reader = JsonLines()
        self.text = StreamedText()
        self._is_chat = is_chat
        self._last: Json = {}

    @property
    def is_whole(self) -> bool:
        return bool(self._last)

    def add(self, event: StreamEvent) -> None:
        line = read_document(event.data)
        refuse_error_event(line)
        holder = object_of(line.get("message")) if self._is_chat else line
        self.text.add(holder.get("content" if self._is_chat else "response"))
        self.text.add_reasoning(text_of(holder.get("thinking")))
        if line.get("done") is True:
            self._last = line

    def document(self) -> Json:
        """The last line holds the token counts and the finish reason."""
        text, thinking = self.text.whole, self.text.reasoning
        holder = {"content" if self._is_chat else "response": text, "thinking": thinking}
        return self._last | ({"message": holder} if self._is_chat else holder)
