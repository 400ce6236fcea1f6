"""Reads what generateContent answers: the text without what was thought, why it ended, token counts."""

from __future__ import annotations

from services.worker import engine
from services.worker.json_answers import Json, count_of, object_of, objects_of, text_of, tokens_of, word_of

_FINISH_REASONS = {"STOP": "stop", "MAX_TOKENS": "length"}
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


def read_generated(document: Json) -> engine.Generated:
    """A stop without a text is an empty answer. What was blocked or broke off, as at a call of a tool that
    cannot be read, is none, whatever was said before.
    """
    blocked = word_of(object_of(document.get("promptFeedback")).get("blockReason"))
    if blocked:
        raise engine.RequestRefused(f"The provider blocked the prompt ({blocked}).")
    candidates = objects_of(document.get("candidates"))
    reason = word_of(candidates[0].get("finishReason")) if candidates else ""
    if not reason:
        raise engine.ProviderFailed("The server's answer holds no finished candidate.")
    if reason in _BLOCKS:
        raise engine.RequestRefused(f"The provider withheld the answer ({reason}).")
    if reason not in _FINISH_REASONS:
        raise engine.ProviderFailed(f"The provider broke off its answer ({reason}).")
    text = _said(object_of(candidates[0].get("content")))
    usage = _usage(object_of(document.get("usageMetadata")))
    return engine.Generated(text, _FINISH_REASONS[reason], usage, engine.Timing())


def _said(content: Json) -> str:
    parts = [part for part in objects_of(content.get("parts")) if part.get("thought") is not True]
    return "".join(text_of(part.get("text")) for part in parts)


def _usage(usage: Json) -> engine.Usage:
    """What was thought is counted apart from the candidates, but generated and paid as they are."""
    thoughts = tokens_of(usage.get("thoughtsTokenCount"))
    return engine.Usage(
        prompt_tokens=tokens_of(usage.get("promptTokenCount")),
        completion_tokens=tokens_of(usage.get("candidatesTokenCount")) + thoughts,
        cached_tokens=tokens_of(usage.get("cachedContentTokenCount")),
        reasoning_tokens=thoughts,
    )


def generates(listed: Json) -> bool:
    methods = listed.get("supportedGenerationMethods")
    return isinstance(methods, list) and "generateContent" in methods


def read_model(listed: Json, provider: str, capabilities: engine.EngineCapabilities) -> engine.ModelInfo:
    name = text_of(listed.get("name")).removeprefix("models/")
    context_length = count_of(listed.get("inputTokenLimit")) or None
    return engine.ModelInfo(f"{provider}/{name}", capabilities, context_length)
