"""Reads what Ollama answers: the text without what was thought, token counts."""

from __future__ import annotations

from services.worker import engine
from services.worker.json_answers import Json, object_of, tokens_of, word_of
from services.worker.json_choice import read_choice


def read_generated(document: Json, *, is_json: bool) -> engine.Generated:
    """Of a chat or a completion; `is_json` where one of given texts was asked for."""
    if document.get("done") is not True:
        raise engine.ProviderFailed("The server's answer ends before the model was done.")
    holder = object_of(document.get("message")) if "message" in document else document
    text = holder.get("content" if "message" in document else "response")
    if not isinstance(text, str):
        raise engine.ProviderFailed("The server's answer holds no text.")
    finish_reason = word_of(document.get("done_reason"))
    return engine.Generated(
        read_choice(text) if is_json else text, finish_reason, _usage(document), engine.Timing()
    )


def _usage(document: Json) -> engine.Usage:
    """Ollama counts what was thought among what was generated, and tells neither that nor its cache."""
    return engine.Usage(
        prompt_tokens=tokens_of(document.get("prompt_eval_count")),
        completion_tokens=tokens_of(document.get("eval_count")),
    )
