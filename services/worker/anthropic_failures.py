"""What the error types of Anthropic's API say beyond the status."""

from __future__ import annotations

from services.worker.http_failures import Meaning, SaidError, read_error_body, says_too_long

_MEANINGS = {"billing_error": Meaning.NO_CREDIT, "request_too_large": Meaning.TOO_LONG}


def read_error(body: bytes) -> SaidError:
    fields, message = read_error_body(body)
    meaning = _MEANINGS.get(str(fields.get("type")))
    return SaidError(message, Meaning.TOO_LONG if says_too_long(message) else meaning)
