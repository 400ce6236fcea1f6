"""What the error types of Anthropic's API say beyond the status."""

from __future__ import annotations

from services.worker.http_failures import Meaning, SaidError, read_error_body, says_too_long
from services.worker.json_answers import Json, object_of, text_of

_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_MEANINGS = {"billing_error": Meaning.NO_CREDIT, "request_too_large": Meaning.TOO_LONG}


def read_error(body: bytes) -> SaidError:
    fields, message = read_error_body(body)
    meaning = _MEANINGS.get(str(fields.get("type")))
    return SaidError(message, Meaning.TOO_LONG if says_too_long(message) else meaning)


def status_of_error(document: Json) -> int:
    """The status that the type of an error comes with, for one in the middle of a stream."""
    return _STATUSES.get(text_of(object_of(document.get("error")).get("type")), 500)
