"""Which failure an HTTP status is: what may be asked again, when, and what the person reads."""

from __future__ import annotations

import orjson
import pytest

from services.worker.engine import FailureClass
from services.worker.openai_failures import failure_from_status, read_error, read_retry_after

NOW = 784111770.0  # Sun, 06 Nov 1994 08:49:30 GMT


def error_body(message: str, code: str | None = None) -> bytes:
    return orjson.dumps({"error": {"message": message, "code": code}})


@pytest.mark.parametrize(
    ("status", "body", "failure_class", "is_transient"),
    [
        (429, error_body("slow down"), FailureClass.RATE_LIMIT, True),
        (429, error_body("no money", "insufficient_quota"), FailureClass.REFUSED, False),
        (500, b"<html>oops</html>", FailureClass.PROVIDER_ERROR, True),
        (503, b"", FailureClass.PROVIDER_ERROR, True),
        (504, b"", FailureClass.TIMEOUT, True),
        (408, b"", FailureClass.TIMEOUT, True),
        (401, error_body("wrong key"), FailureClass.REFUSED, False),
        (403, error_body("not yours"), FailureClass.REFUSED, False),
        (404, error_body("no such model"), FailureClass.REFUSED, False),
        (400, error_body("bad temperature"), FailureClass.REFUSED, False),
        (400, error_body("too long", "context_length_exceeded"), FailureClass.PROMPT_TOO_LONG, False),
        (
            400,
            error_body("This model's maximum context length is 2048 tokens. However, you requested 3000"),
            FailureClass.PROMPT_TOO_LONG,
            False,
        ),
        (413, b"", FailureClass.PROMPT_TOO_LONG, False),
        (400, error_body("flagged", "content_filter"), FailureClass.REFUSED, False),
    ],
)
def test_status_decides_the_class(
    status: int, body: bytes, failure_class: FailureClass, *, is_transient: bool
) -> None:
    failure = failure_from_status(status, {}, body, now=NOW)
    assert (failure.failure_class, failure.is_transient) == (failure_class, is_transient)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 7.0),
        ("Sun, 06 Nov 1994 08:49:00 GMT", 0.0),
        ("1e300", 86400.0),
        ("Sun, 06 Nov 2994 08:49:37 GMT", 86400.0),
        ("inf", None),
        ("-inf", None),
        ("nan", None),
        ("Sun, 06 Nov 99999999999999999999 08:49:37 GMT", None),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_read_in_both_forms(value: str, seconds: float | None) -> None:
    assert read_retry_after({"Retry-After": value}, NOW) == seconds


def test_rate_limit_says_when_to_come_back() -> None:
    assert failure_from_status(429, {"Retry-After": "3"}, b"", now=NOW).retry_after_seconds == 3.0


def test_refusal_says_what_to_do() -> None:
    assert "API key" in str(failure_from_status(401, {}, error_body("no"), now=NOW))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"error": "plain"}', ("", "plain")),
        (b'{"message": "top level", "code": 40}', ("40", "top level")),
        (b'{"error": {"message": "m", "type": "t"}}', ("t", "m")),
        (b"[1]", ("", "")),
        (b"not json\n at all", ("", "not json at all")),
    ],
)
def test_error_bodies_of_many_servers_are_read(body: bytes, expected: tuple[str, str]) -> None:
    assert read_error(body) == expected


def test_a_page_of_html_is_cut() -> None:
    assert len(read_error(b"x" * 5000)[1]) == 300
