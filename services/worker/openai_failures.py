"""Tells an HTTP answer of an OpenAI-compatible server that is no answer in the worker's words."""

from __future__ import annotations

import email.utils
import math
import re
from collections.abc import Mapping

import orjson

from services.worker import engine

_TOO_LONG_CODES = frozenset({"context_length_exceeded", "string_above_max_length"})
_TOO_LONG_TEXT = re.compile(
    r"context[ _](length|window)|maximum (context|model|input) length|too many (input )?tokens"
    r"|prompt is too long|max_model_len|longer than the maximum",
    re.IGNORECASE,
)
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"})
_TIMEOUT_STATUSES = frozenset({408, 504})
_RATE_LIMIT_STATUSES = frozenset({429})
_LONGEST_RETRY_AFTER_SECONDS = 86400.0
_ADVICE = {
    400: "check the parameters of the run",
    401: "check the provider's API key",
    403: "check what the API key may use",
    404: "check the model's name and the base URL",
}


def failure_from_status(
    status: int, headers: Mapping[str, str], body: bytes, *, now: float
) -> engine.EngineFailure:
    """The class of failure for a status of 400 or more."""
    code, message = read_error(body)
    said = f" and said: {message}" if message else ""
    sentence = f"The server answered {status}{said}"
    if status in _RATE_LIMIT_STATUSES:
        if code == "insufficient_quota":
            return engine.RequestRefused(f"{sentence} (check the provider's plan and billing).")
        return engine.RateLimited(sentence, retry_after_seconds=read_retry_after(headers, now))
    if status in _TIMEOUT_STATUSES:
        return engine.RequestTimedOut(sentence, retry_after_seconds=read_retry_after(headers, now))
    if status >= 500:
        return engine.ProviderFailed(sentence, retry_after_seconds=read_retry_after(headers, now))
    if code in _TOO_LONG_CODES or _TOO_LONG_TEXT.search(message) or status == 413:
        return engine.PromptTooLong(sentence)
    if code in _FILTER_CODES:
        return engine.RequestRefused(f"The server's content filter refused the prompt: {message}")
    return engine.RequestRefused(f"{sentence} ({_ADVICE.get(status, 'asking again will not help')}).")


def read_error(body: bytes) -> tuple[str, str]:
    """Code and message of `{"error": {...}}`, `{"error": "..."}`, `{"message": ...}` or plain text."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return "", _short(body.decode("utf-8", "replace"))
    if not isinstance(document, dict):
        return "", ""
    error = document.get("error", document)
    if isinstance(error, str):
        return "", _short(error)
    if not isinstance(error, dict):
        return "", ""
    return str(error.get("code") or error.get("type") or ""), _short(str(error.get("message") or ""))


def read_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds, or the seconds until an HTTP date, from 0 to a day. `now` is in seconds since 1970."""
    seconds = _read_seconds(headers.get("Retry-After", "").strip(), now)
    if seconds is None or not math.isfinite(seconds):
        return None
    return min(max(0.0, seconds), _LONGEST_RETRY_AFTER_SECONDS)


def _read_seconds(value: str, now: float) -> float | None:
    try:
        return float(value)
    except ValueError:
        pass
    try:
        return email.utils.parsedate_to_datetime(value).timestamp() - now
    except (ValueError, OverflowError):
        return None


def _short(text: str) -> str:
    """One line, without what could be a page of HTML."""
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:299] + "…"
