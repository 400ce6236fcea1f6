"""Which failure an HTTP status is: what may be asked again, when, and what the person reads."""

import pytest

from proctor.values.outcome import FailureClass
from services.worker.engines.errors import ModelRefused, RequestRefused
from services.worker.engines.http.error_bodies import parse_error_body
from services.worker.engines.http.error_responses import (
    SCORING_ADVICE,
    ErrorMeaning,
    ErrorResponse,
    ProviderError,
    failure_of,
    parse_plain_error,
    parse_retry_after,
)

NOW = 784111770.0  # Sun, 06 Nov 1994 08:49:30 GMT


@pytest.mark.parametrize(
    ("status", "said", "failure_class", "is_transient"),
    [
        (307, ProviderError(""), FailureClass.REFUSED, False),
        (400, ProviderError("bad temperature"), FailureClass.REFUSED, False),
        (400, ProviderError("too long", ErrorMeaning.TOO_LONG), FailureClass.PROMPT_TOO_LONG, False),
        (400, ProviderError("flagged", ErrorMeaning.FILTERED), FailureClass.REFUSED, False),
        (401, ProviderError("wrong key"), FailureClass.REFUSED, False),
        (403, ProviderError("not yours"), FailureClass.REFUSED, False),
        (404, ProviderError("no such model"), FailureClass.REFUSED, False),
        (408, ProviderError(""), FailureClass.TIMEOUT, True),
        (413, ProviderError(""), FailureClass.PROMPT_TOO_LONG, False),
        (429, ProviderError("slow down"), FailureClass.RATE_LIMIT, True),
        (
            429,
            ProviderError("too many tokens a minute", ErrorMeaning.TOO_LONG),
            FailureClass.RATE_LIMIT,
            True,
        ),
        (429, ProviderError("no money", ErrorMeaning.NO_CREDIT), FailureClass.REFUSED, False),
        (500, ProviderError("oops"), FailureClass.PROVIDER_ERROR, True),
        (500, ProviderError("too long", ErrorMeaning.TOO_LONG), FailureClass.PROMPT_TOO_LONG, False),
        (503, ProviderError(""), FailureClass.PROVIDER_ERROR, True),
        (504, ProviderError(""), FailureClass.TIMEOUT, True),
    ],
)
def test_status_and_meaning_decide_the_class(
    status: int, said: ProviderError, failure_class: FailureClass, *, is_transient: bool
) -> None:
    failure = failure_of(ErrorResponse(status, said))
    assert (failure.failure_class, failure.is_transient) == (failure_class, is_transient)


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 2048 tokens. However, you requested 3000",
        "the input length exceeds the context length",
        "prompt is too long: 250000 tokens > 200000 maximum",
        "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
        "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
        "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens",
        "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
        "Input is too long for requested model.",
        "Invalid request: Your request exceeded model token limit: 8192",
        "Prompt exceeds max length",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
        "The sum of prompt length (5000.0), query length (0) should not exceed max_num_tokens (8192)",
        "Range of input length should be [1, 30720]",
        "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
    ],
)
def test_prompt_that_is_too_long_is_known_by_the_messages_of_many_servers(message: str) -> None:
    assert parse_plain_error(message.encode()).meaning is ErrorMeaning.TOO_LONG


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 200000. This model supports at most 16384 completion tokens.",
        "Invalid 'temperature': decimal above maximum value. Expected a value <= 2",
        "'stop' has too many entries: at most 4",
    ],
)
def test_a_parameter_that_is_too_large_is_no_prompt_that_is_too_long(message: str) -> None:
    assert parse_plain_error(message.encode()).meaning is None


@pytest.mark.parametrize("status", [400, 403, 429, 500])
@pytest.mark.parametrize(
    "message",
    [
        "Your credit balance is too low to access the API. Please go to Plans & Billing.",
        "Your account org-1<ak-2> is suspended, please check your plan and billing details",
        "余额不足或无可用资源包,请充值。",
    ],
)
def test_an_account_without_credit_is_refused_once_whatever_the_status(status: int, message: str) -> None:
    failure = failure_of(ErrorResponse(status, ProviderError(message)))
    assert isinstance(failure, ModelRefused)
    assert failure.is_certain


@pytest.mark.parametrize(
    ("message", "failure_class"),
    [
        (
            "Request too large for m on tokens per min (TPM): Limit 30000, Requested 36278.",
            FailureClass.PROMPT_TOO_LONG,
        ),
        (
            "Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29937, Requested 385.",
            FailureClass.RATE_LIMIT,
        ),
    ],
)
def test_a_request_that_is_larger_than_the_rate_limit_is_not_waited_for(
    message: str, failure_class: FailureClass
) -> None:
    assert failure_of(ErrorResponse(429, ProviderError(message))).failure_class is failure_class


@pytest.mark.parametrize(
    "message",
    [
        "You exceeded your current quota, please check your plan and billing details.",
        "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 requests per day",
        "Insufficient quota for this minute",
    ],
)
def test_a_rate_limit_that_speaks_of_credit_is_one(message: str) -> None:
    assert failure_of(ErrorResponse(429, ProviderError(message))).failure_class is FailureClass.RATE_LIMIT


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
    assert parse_retry_after({"retry-after": value}, NOW) == seconds


def test_time_to_wait_of_the_body_comes_before_that_of_the_header() -> None:
    header = failure_of(ErrorResponse(429, ProviderError(""), retry_after_seconds=3.0))
    body = failure_of(ErrorResponse(429, ProviderError("", retry_after_seconds=0.0), retry_after_seconds=3.0))
    assert (header.retry_after_seconds, body.retry_after_seconds) == (3.0, 0.0)


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (ErrorResponse(401, ProviderError("no")), "check the API key of the provider"),
        (ErrorResponse(401, ProviderError("no"), "SOME_KEY"), "check the API key in SOME_KEY"),
        (
            ErrorResponse(400, ProviderError("no", ErrorMeaning.WRONG_KEY), "SOME_KEY"),
            "check the API key in SOME_KEY",
        ),
        (ErrorResponse(403, ProviderError("no"), "SOME_KEY"), "check what the API key in SOME_KEY may use"),
        (ErrorResponse(301, ProviderError("")), "check the base URL"),
        (ErrorResponse(404, ProviderError("no")), "check the model's name and the base URL"),
        (ErrorResponse(402, ProviderError("no")), "check the provider's plan and billing"),
        (ErrorResponse(422, ProviderError("no")), "asking again will not help"),
        (
            ErrorResponse(404, ProviderError("no"), request={"echo": True}),
            f"check the model's name and the base URL; {SCORING_ADVICE}",
        ),
        (
            ErrorResponse(404, ProviderError("no"), request={"echo": False}),
            "check the model's name and the base URL",
        ),
    ],
)
def test_refusal_advises_what_to_do(answer: ErrorResponse, advice: str) -> None:
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
    assert parse_error_body(body) == (fields, message)


def test_a_page_of_html_is_cut() -> None:
    assert len(parse_plain_error(b"x" * 5000).message) == 300


@pytest.mark.parametrize(
    ("status", "said", "is_certain"),
    [
        (307, ProviderError(""), True),
        (400, ProviderError("API key not valid", ErrorMeaning.WRONG_KEY), True),
        (401, ProviderError("wrong key"), True),
        (402, ProviderError("pay"), True),
        (403, ProviderError("Your project has no access to this model"), True),
        (403, ProviderError("Permission denied on resource"), True),
        (403, ProviderError("Forbidden"), False),
        (403, ProviderError(""), False),
        (404, ProviderError("no such model"), True),
        (429, ProviderError("no money", ErrorMeaning.NO_CREDIT), True),
    ],
)
def test_refusal_of_key_or_model_has_a_class_of_its_own(
    status: int, said: ProviderError, *, is_certain: bool
) -> None:
    failure = failure_of(ErrorResponse(status, said))
    assert isinstance(failure, ModelRefused)
    assert failure.is_certain == is_certain


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, ProviderError("bad temperature")),
        (400, ProviderError("flagged", ErrorMeaning.FILTERED)),
        (403, ProviderError("Content violates usage guidelines.")),
        (403, ProviderError("Your input was flagged by moderation; check your account")),
        (422, ProviderError("no")),
    ],
)
def test_refusal_of_one_prompt_is_its_own(status: int, said: ProviderError) -> None:
    failure = failure_of(ErrorResponse(status, said))
    assert isinstance(failure, RequestRefused)
    assert not isinstance(failure, ModelRefused)
