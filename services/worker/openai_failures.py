"""What the error codes of OpenAI-compatible servers say beyond the status."""

from __future__ import annotations

from services.worker.http_failures import Meaning, SaidError, read_error_body, says_too_long

_TOO_LONG_CODES = frozenset({"context_length_exceeded", "string_above_max_length"})
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"})


def read_error(body: bytes) -> SaidError:
    fields, message = read_error_body(body)
    return SaidError(message, _meaning(str(fields.get("code") or fields.get("type") or ""), message))


def _meaning(code: str, message: str) -> Meaning | None:
    if code == "insufficient_quota":
        return Meaning.NO_CREDIT
    if code in _TOO_LONG_CODES or says_too_long(message):
        return Meaning.TOO_LONG
    return Meaning.FILTERED if code in _FILTER_CODES else None
