"""Tells an HTTP answer of a model server that is no answer in the worker's words."""

from __future__ import annotations

import email.utils
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto

import orjson

from services.worker.engines import engine
from services.worker.engines.json_values import Json, count_of, object_of, objects_of

_TOO_LONG_TEXT = re.compile(
    r"context[ _](length|window)|maximum (context|model|input) length|too many (input )?tokens"
    r"|prompt (is )?too long|max_model_len|longer than the maximum|input token count.* exceeds",
    re.IGNORECASE,
)
_TIMEOUT_STATUSES = frozenset({408, 504})
# A key, an account, a model or a path that the server will not serve, whatever it is asked.
_MODEL_STATUSES = frozenset({401, 402, 403, 404})
# By 403 some servers refuse a key, and some a prompt.
_FILTERED_TEXT = re.compile(
    r"flagged|moderation|usage guidelines|safety (check|filter|system)|content (filter|policy|violat)",
    re.IGNORECASE,
)
_KEY_TEXT = re.compile(
    r"\bkey\b|credential|permission|authori[sz]|access|account|organi[sz]ation|project|region|country|billing",
    re.IGNORECASE,
)
_STATUS_TEXT = re.compile(r"[45][0-9]{2}")
_LONGEST_RETRY_AFTER_SECONDS = 86400.0
_ADVICE = {
    400: "check the parameters of the run or of the line",
    402: "check the provider's plan and billing",
    404: "check the model's name and the base URL",
}
_NO_HELP = "asking again will not help"


class Meaning(StrEnum):
    """What an error says beyond its status."""

    TOO_LONG = auto()
    FILTERED = auto()
    WRONG_KEY = auto()
    NO_CREDIT = auto()


@dataclass(frozen=True, slots=True)
class SaidError:
    """The body of an error: one line of text, and what a provider's own codes add to it."""

    message: str
    meaning: Meaning | None = None
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """`key_variable` is the environment variable that holds the key; empty where no key was named."""

    status: int
    said: SaidError
    key_variable: str = ""
    retry_after_seconds: float | None = None
    # It came in the middle of a streamed answer, so the status is what its code stands for.
    is_midway: bool = False


def failure_of(answer: ErrorAnswer) -> engine.EngineFailure:
    """The class of failure for a status of 300 or more."""
    status, said = answer.status, answer.said
    answered = "broke off its answer with" if answer.is_midway else "answered"
    sentence = f"The server {answered} {status}" + (f" and said: {said.message}" if said.message else "")
    wait = answer.retry_after_seconds if said.retry_after_seconds is None else said.retry_after_seconds
    if said.meaning is Meaning.NO_CREDIT:
        return engine.ModelRefused(f"{sentence} ({_ADVICE[402]}).")
    if status == 429:
        return engine.RateLimited(sentence, retry_after_seconds=wait)
    if status in _TIMEOUT_STATUSES:
        return engine.RequestTimedOut(sentence, retry_after_seconds=wait)
    if said.meaning is Meaning.TOO_LONG or status == 413:
        return engine.PromptTooLong(sentence)
    if status >= 500:
        return engine.ProviderFailed(sentence, retry_after_seconds=wait)
    if said.meaning is Meaning.FILTERED or (status == 403 and _FILTERED_TEXT.search(said.message)):
        return engine.RequestRefused(f"The server's content filter refused the prompt: {said.message}")
    told = f"{sentence} ({_advice(answer)})."
    if not _is_about_model(answer):
        return engine.RequestRefused(told)
    return engine.ModelRefused(told, is_certain=status != 403 or bool(_KEY_TEXT.search(said.message)))


def _is_about_model(answer: ErrorAnswer) -> bool:
    """A redirect is not followed: the base URL is wrong for every request."""
    is_status = answer.status < 400 or answer.status in _MODEL_STATUSES
    return is_status or answer.said.meaning is Meaning.WRONG_KEY


def _advice(answer: ErrorAnswer) -> str:
    where = f" in {answer.key_variable}" if answer.key_variable else " of the provider"
    if answer.status == 401 or answer.said.meaning is Meaning.WRONG_KEY:
        return f"check the API key{where}"
    if answer.status == 403:
        return f"check what the API key{where} may use"
    return "check the base URL" if answer.status < 400 else _ADVICE.get(answer.status, _NO_HELP)


def read_plain_error(body: bytes) -> SaidError:
    """An error without codes that say more than the status."""
    message = read_error_body(body)[1]
    return SaidError(message, Meaning.TOO_LONG if says_too_long(message) else None)


def says_too_long(message: str) -> bool:
    return _TOO_LONG_TEXT.search(message) is not None


def read_error_body(body: bytes) -> tuple[Json, str]:
    """Fields and message of `{"error": {...}}`, `{"error": "..."}`, `{"message": ...}` or plain text.

    Of a list, as Google sends it, the first one is read.
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}, _short(body.decode("utf-8", "replace"))
    if isinstance(document, list):
        document = next(iter(objects_of(document)), None)
    error = object_of(document).get("error", document)
    if isinstance(error, str):
        return {}, _short(error)
    fields = object_of(error)
    return fields, _short(str(fields.get("message") or ""))


def read_status(code: object) -> int | None:
    """The status of HTTP that an error in the middle of an answer names, as a number or in digits."""
    status = count_of(int(code) if isinstance(code, str) and _STATUS_TEXT.fullmatch(code) else code)
    return status if 400 <= status < 600 else None


def read_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds, or the seconds until an HTTP date, from 0 to a day. `now` is in seconds since 1970."""
    return within_a_day(_read_seconds(headers.get("Retry-After", "").strip(), now))


def within_a_day(seconds: float | None) -> float | None:
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
