"""What the error codes of OpenAI-compatible servers say beyond the status."""

from __future__ import annotations

from services.worker.http_failures import Meaning, SaidError, read_error_body, read_status, says_too_long
from services.worker.json_answers import Json, object_of, text_of

_TOO_LONG_CODES = frozenset({"context_length_exceeded", "string_above_max_length"})
_STATUSES = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "invalid_request_error": 400,
    "BadRequestError": 400,
    "authentication_error": 401,
    "not_found_error": 404,
}
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"})


def read_error(body: bytes) -> SaidError:
    fields, message = read_error_body(body)
    return SaidError(message, _meaning(str(fields.get("code") or fields.get("type") or ""), message))


def status_of_error(document: Json) -> int:
    """Of one in the middle of a stream: some servers give the status as the code, others only a word."""
    fields = object_of(document.get("error")) or document
    status = read_status(fields.get("code"))
    if status is not None:
        return status
    words = [text_of(fields.get(name)) for name in ("code", "type")]
    if not _FILTER_CODES.isdisjoint(words):
        return 400
    return next((_STATUSES[word] for word in words if word in _STATUSES), 500)


def _meaning(code: str, message: str) -> Meaning | None:
    if code == "insufficient_quota":
        return Meaning.NO_CREDIT
    if code in _TOO_LONG_CODES or says_too_long(message):
        return Meaning.TOO_LONG
    return Meaning.FILTERED if code in _FILTER_CODES else None
