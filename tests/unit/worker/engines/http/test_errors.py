"""Which failure an HTTP status is: what may be asked again, when, and what the person reads."""

from __future__ import annotations

import pytest

from services.worker.engines.engine import FailureClass, ModelRefused, RequestRefused
from services.worker.engines.http.errors import (
    ErrorAnswer,
    Meaning,
    SaidError,
    failure_of,
    read_error_body,
    read_plain_error,
    read_retry_after,
)

NOW = 784111770.0  # Sun, 06 Nov 1994 08:49:30 GMT


@pytest.mark.parametrize(
    ("status", "said", "failure_class", "is_transient"),
    [
        (307, SaidError(""), FailureClass.REFUSED, False),
        (400, SaidError("bad temperature"), FailureClass.REFUSED, False),
        (400, SaidError("too long", Meaning.TOO_LONG), FailureClass.PROMPT_TOO_LONG, False),
        (400, SaidError("flagged", Meaning.FILTERED), FailureClass.REFUSED, False),
        (401, SaidError("wrong key"), FailureClass.REFUSED, False),
        (403, SaidError("not yours"), FailureClass.REFUSED, False),
        (404, SaidError("no such model"), FailureClass.REFUSED, False),
        (408, SaidError(""), FailureClass.TIMEOUT, True),
        (413, SaidError(""), FailureClass.PROMPT_TOO_LONG, False),
        (429, SaidError("slow down"), FailureClass.RATE_LIMIT, True),
        (429, SaidError("too many tokens a minute", Meaning.TOO_LONG), FailureClass.RATE_LIMIT, True),
        (429, SaidError("no money", Meaning.NO_CREDIT), FailureClass.REFUSED, False),
        (500, SaidError("oops"), FailureClass.PROVIDER_ERROR, True),
        (500, SaidError("too long", Meaning.TOO_LONG), FailureClass.PROMPT_TOO_LONG, False),
        (503, SaidError(""), FailureClass.PROVIDER_ERROR, True),
        (504, SaidError(""), FailureClass.TIMEOUT, True),
    ],
)
def test_status_and_meaning_decide_the_class(
    status: int, said: SaidError, failure_class: FailureClass, *, is_transient: bool
) -> None:
    failure = failure_of(ErrorAnswer(status, said))
    assert (failure.failure_class, failure.is_transient) == (failure_class, is_transient)


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 2048 tokens. However, you requested 3000",
        "the input length exceeds the context length",
        "prompt is too long: 250000 tokens > 200000 maximum",
        "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
    ],
)
def test_prompt_that_is_too_long_is_known_by_the_words_of_many_servers(message: str) -> None:
    assert read_plain_error(message.encode()).meaning is Meaning.TOO_LONG


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


def test_time_to_wait_of_the_body_comes_before_that_of_the_header() -> None:
    header = failure_of(ErrorAnswer(429, SaidError(""), retry_after_seconds=3.0))
    body = failure_of(ErrorAnswer(429, SaidError("", retry_after_seconds=0.0), retry_after_seconds=3.0))
    assert (header.retry_after_seconds, body.retry_after_seconds) == (3.0, 0.0)


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (ErrorAnswer(401, SaidError("no")), "check the API key of the provider"),
        (ErrorAnswer(401, SaidError("no"), "SOME_KEY"), "check the API key in SOME_KEY"),
        (ErrorAnswer(400, SaidError("no", Meaning.WRONG_KEY), "SOME_KEY"), "check the API key in SOME_KEY"),
        (ErrorAnswer(403, SaidError("no"), "SOME_KEY"), "check what the API key in SOME_KEY may use"),
        (ErrorAnswer(301, SaidError("")), "check the base URL"),
        (ErrorAnswer(404, SaidError("no")), "check the model's name and the base URL"),
        (ErrorAnswer(402, SaidError("no")), "check the provider's plan and billing"),
        (ErrorAnswer(422, SaidError("no")), "asking again will not help"),
    ],
)
def test_refusal_says_what_to_do(answer: ErrorAnswer, advice: str) -> None:
    assert f"({advice})." in str(failure_of(answer))


@pytest.mark.parametrize(
    ("body", "fields", "message"),
    [
        (b'{"error": "plain"}', {}, "plain"),
        (b'{"message": "top level", "code": 40}', {"message": "top level", "code": 40}, "top level"),
        (b'{"error": {"message": "m", "type": "t"}}', {"message": "m", "type": "t"}, "m"),
        (b'{"error": 7}', {}, ""),
        (b"[1]", {}, ""),
        (b'[{"error": {"message": "m", "code": 400}}]', {"message": "m", "code": 400}, "m"),
        (b'[1, {"message": "top level"}, {"message": "second"}]', {"message": "top level"}, "top level"),
        (b"not json\n at all", {}, "not json at all"),
    ],
)
def test_error_bodies_of_many_servers_are_read(body: bytes, fields: dict[str, object], message: str) -> None:
    assert read_error_body(body) == (fields, message)


def test_a_page_of_html_is_cut() -> None:
    assert len(read_plain_error(b"x" * 5000).message) == 300


@pytest.mark.parametrize(
    ("status", "said", "is_certain"),
    [
        (307, SaidError(""), True),
        (400, SaidError("API key not valid", Meaning.WRONG_KEY), True),
        (401, SaidError("wrong key"), True),
        (402, SaidError("pay"), True),
        (403, SaidError("Your project has no access to this model"), True),
        (403, SaidError("Permission denied on resource"), True),
        (403, SaidError("Forbidden"), False),
        (403, SaidError(""), False),
        (404, SaidError("no such model"), True),
        (429, SaidError("no money", Meaning.NO_CREDIT), True),
    ],
)
def test_refusal_of_key_or_model_is_told_apart(status: int, said: SaidError, *, is_certain: bool) -> None:
    failure = failure_of(ErrorAnswer(status, said))
    assert isinstance(failure, ModelRefused)
    assert failure.is_certain == is_certain


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, SaidError("bad temperature")),
        (400, SaidError("flagged", Meaning.FILTERED)),
        (403, SaidError("Content violates usage guidelines.")),
        (403, SaidError("Your input was flagged by moderation; check your account")),
        (422, SaidError("no")),
    ],
)
def test_refusal_of_one_prompt_is_its_own(status: int, said: SaidError) -> None:
    failure = failure_of(ErrorAnswer(status, said))
    assert isinstance(failure, RequestRefused)
    assert not isinstance(failure, ModelRefused)
