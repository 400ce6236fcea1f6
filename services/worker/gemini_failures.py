"""What Google's errors say beyond the status: a wrong key comes as 400, the time to wait in the body."""

from __future__ import annotations

from services.worker.http_failures import Meaning, SaidError, read_error_body, says_too_long, within_a_day
from services.worker.json_answers import Json, objects_of, text_of

_KEY_REASONS = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_SERVICE_BLOCKED"})


def read_error(body: bytes) -> SaidError:
    fields, message = read_error_body(body)
    details = objects_of(fields.get("details"))
    return SaidError(message, _meaning(details, message), _retry_delay(details))


def _meaning(details: list[Json], message: str) -> Meaning | None:
    if any(each.get("reason") in _KEY_REASONS for each in details):
        return Meaning.WRONG_KEY
    return Meaning.TOO_LONG if says_too_long(message) else None


def _retry_delay(details: list[Json]) -> float | None:
    """The duration "34.5s" of a google.rpc.RetryInfo."""
    delays = [text_of(each.get("retryDelay")) for each in details if each.get("retryDelay")]
    try:
        return within_a_day(float(delays[0].removesuffix("s"))) if delays else None
    except ValueError:
        return None
