"""Maps an error response of a model server to the worker's classes of failure."""

import email.utils
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto

from proctor.values.plain import Json
from services.worker.engines.errors import (
    EngineFailure,
    ModelRefused,
    PromptTooLong,
    ProviderFailed,
    RateLimited,
    RequestRefused,
    RequestTimedOut,
)
from services.worker.engines.http.error_bodies import parse_error_body
from services.worker.engines.http.error_texts import (
    has_no_credit,
    is_filtered,
    is_over_rate_limit,
    is_too_long,
)

_TIMEOUT_STATUSES = frozenset({408, 504})
# The key, the account, the model or the path is refused, so every request would be.
_MODEL_STATUSES = frozenset({401, 402, 403, 404})
_KEY_TEXT = re.compile(
    r"\bkey\b|credential|permission|authori[sz]|access|account|organi[sz]ation|project|region|country|billing",
    re.IGNORECASE,
)
_TOOLS_TEXT = re.compile(r"\btools?\b|function[ _-]call", re.IGNORECASE)
_SUPPORT_TEXT = re.compile(r"requires?\b|support|enable|not (available|allowed|implemented)", re.IGNORECASE)
# Limits are per day at the longest; a larger number is a mistake or an attack.
_MAX_RETRY_AFTER_SECONDS = 86400.0
_ADVICE = {
    400: "check the parameters of the run or of the line",
    402: "check the provider's plan and billing",
    404: "check the model's name and the base URL",
}
# The path, the method or a field of the request is not known there.
_NO_SCORING_STATUSES = frozenset({400, 404, 405, 422})
SCORING_ADVICE = "where the server scores no given texts, order the run with scoring_method generate"
_NO_HELP = "asking again will not help"


class ErrorMeaning(StrEnum):
    """The meaning that the body of an error adds to its status."""

    TOO_LONG = auto()
    FILTERED = auto()
    WRONG_KEY = auto()
    NO_CREDIT = auto()


@dataclass(frozen=True, slots=True)
class ProviderError:
    """The body of an error: one line of text, and the meaning of the provider's own codes.

    `refused_fields` are fields of the request that the server does not take at all.
    """

    message: str
    meaning: ErrorMeaning | None = None
    retry_after_seconds: float | None = None
    refused_fields: frozenset[str] = frozenset()


class ErrorPlace(StrEnum):
    """What the server did, up to the status of the error."""

    RESPONSE = "answered"
    ANSWER = "answered 200 with the error"
    STREAM = "broke off its answer with"


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """`api_key_env` is the environment variable with the key; empty where the pool names none."""

    status: int
    error: ProviderError
    api_key_env: str = ""
    retry_after_seconds: float | None = None
    # How it came: with its status, or in the place of an answer, which it stands for.
    place: ErrorPlace = ErrorPlace.RESPONSE
    # The body of the request.
    request: Json | None = None

    @property
    def had_tools(self) -> bool:
        return bool(self.request and self.request.get("tools"))

    @property
    def scored_texts(self) -> bool:
        """The request asked for the log-probabilities of given texts, as many servers cannot."""
        return bool(self.request and self.request.get("echo"))


def failure_of(response: ErrorResponse) -> EngineFailure:
    """The class of failure for a status of 300 or more."""
    status, error = response.status, response.error
    said = f" and said: {error.message}" if error.message else ""
    sentence = f"The server {response.place} {status}{said}"
    wait = response.retry_after_seconds if error.retry_after_seconds is None else error.retry_after_seconds
    # Before 429, by which OpenAI and others report it: waiting would not help.
    if error.meaning is ErrorMeaning.NO_CREDIT or has_no_credit(error.message):
        return ModelRefused(f"{sentence} ({_ADVICE[402]}).")
    if status == 429 and is_over_rate_limit(error.message):
        return PromptTooLong(sentence)
    if status == 429:
        return RateLimited(sentence, retry_after_seconds=wait)
    if status in _TIMEOUT_STATUSES:
        return RequestTimedOut(sentence, retry_after_seconds=wait)
    if error.meaning is ErrorMeaning.TOO_LONG or status == 413:
        return PromptTooLong(sentence)
    if response.had_tools and _is_about_tools(status, error.message):
        return RequestRefused(f"{sentence} (the server takes no tools for this model).")
    if status >= 500:
        return ProviderFailed(sentence, retry_after_seconds=wait)
    return _refusal(response, sentence)


def _refusal(response: ErrorResponse, sentence: str) -> EngineFailure:
    """A failure that no later try changes: of the request, or of all requests to the model."""
    status, error = response.status, response.error
    if error.meaning is ErrorMeaning.FILTERED or (status == 403 and is_filtered(error.message)):
        return RequestRefused(f"The server's content filter refused the prompt: {error.message}")
    advised = f"{sentence} ({_advice(response)})."
    if not _is_about_model(response):
        return RequestRefused(advised, refused_fields=error.refused_fields)
    return ModelRefused(advised, is_certain=status != 403 or bool(_KEY_TEXT.search(error.message)))


def _is_about_tools(status: int, message: str) -> bool:
    """OpenRouter refuses tools by 404, llama.cpp by 500. An unreadable call is not a refusal."""
    is_refusal = status == 404 or (status >= 500 and _SUPPORT_TEXT.search(message) is not None)
    return is_refusal and _TOOLS_TEXT.search(message) is not None


def _is_about_model(response: ErrorResponse) -> bool:
    """Redirects count as well: they are not followed, so the base URL is wrong for every request."""
    is_status = response.status < 400 or response.status in _MODEL_STATUSES
    return is_status or response.error.meaning is ErrorMeaning.WRONG_KEY


def _advice(response: ErrorResponse) -> str:
    where = f" in {response.api_key_env}" if response.api_key_env else " of the provider"
    if response.status == 401 or response.error.meaning is ErrorMeaning.WRONG_KEY:
        return f"check the API key{where}"
    if response.status == 403:
        return f"check what the API key{where} may use"
    advice = "check the base URL" if response.status < 400 else _ADVICE.get(response.status, _NO_HELP)
    if response.scored_texts and response.status in _NO_SCORING_STATUSES:
        return f"{advice}; {SCORING_ADVICE}"
    return advice


def parse_plain_error(body: bytes) -> ProviderError:
    """An error without codes of its own."""
    message = parse_error_body(body)[1]
    return ProviderError(message, ErrorMeaning.TOO_LONG if is_too_long(message) else None)


def parse_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds, or the seconds until an HTTP date, from 0 to a day. `now` is in seconds since 1970.

    `headers` have lowercase names, or none that depend on the case.
    """
    return within_a_day(_parse_seconds(headers.get("retry-after", "").strip(), now))


def within_a_day(seconds: float | None) -> float | None:
    if seconds is None or not math.isfinite(seconds):
        return None
    return min(max(0.0, seconds), _MAX_RETRY_AFTER_SECONDS)


def _parse_seconds(value: str, now: float) -> float | None:
    try:
        return float(value)
    except ValueError:
        pass
    try:
        return email.utils.parsedate_to_datetime(value).timestamp() - now
    except (ValueError, OverflowError):
        return None
