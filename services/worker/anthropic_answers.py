"""Reads what the Messages API answers: the text without what was thought, why it ended, token counts."""

from __future__ import annotations

from services.worker import engine
from services.worker.json_answers import Json, count_of, object_of, objects_of, text_of, tokens_of, word_of

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
