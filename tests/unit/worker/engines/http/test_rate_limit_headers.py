"""Headers of answers with a provider's limits."""

import pytest

from services.worker.engines.http.rate_limit_headers import parse_limits
from services.worker.rate_limits.limiter import AllowedLimits


def openai(limit: str, left: str, reset: str, what: str = "requests") -> dict[str, str]:
    return {
        f"x-ratelimit-limit-{what}": limit,
        f"x-ratelimit-remaining-{what}": left,
        f"x-ratelimit-reset-{what}": reset,
    }


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        # A minute's limit: 10,000 a minute come back at 1 in 6 ms.
        (openai("10000", "9999", "6ms"), AllowedLimits(requests=10000 / 60)),
        (openai("60", "59", "1s"), AllowedLimits(requests=1.0)),
        (openai("600", "300", "30s"), AllowedLimits(requests=10.0)),
        (openai("150000", "149984", "6ms", "tokens"), AllowedLimits(tokens=2500.0)),
        (openai("20", "10", "500ms"), AllowedLimits(requests=20.0)),
        # A day's limit is not to be spread over the day.
        (openai("200", "199", "7m12s"), AllowedLimits()),
        (openai("14400", "14370", "2m59.56s"), AllowedLimits()),
        # Nothing to tell the window from.
        (openai("60", "60", "0s"), AllowedLimits()),
        (openai("60", "nan", "1s"), AllowedLimits()),
        (openai("60", "59", "soon"), AllowedLimits()),
        ({"x-ratelimit-limit-requests": "60"}, AllowedLimits()),
    ],
)
def test_openai_names_no_window_and_it_is_found(headers: dict[str, str], allowed: AllowedLimits) -> None:
    read = parse_limits(headers)
    assert read is not None
    assert read.requests == pytest.approx(allowed.requests)
    assert read.tokens == pytest.approx(allowed.tokens)


def test_limits_of_anthropic_are_those_of_a_minute() -> None:
    headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:01Z",
        "anthropic-ratelimit-tokens-limit": "60000",
    }
    assert parse_limits(headers) == AllowedLimits(requests=50 / 60, tokens=1000.0)


def test_an_answer_without_such_headers_names_no_limit() -> None:
    assert parse_limits({"Content-Type": "application/json"}) is None
