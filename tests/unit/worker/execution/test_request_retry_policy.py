"""When a sample is asked again."""

import pytest

from services.worker.engines.errors import ProviderFailed, RequestRefused
from services.worker.execution.execute_sample import RequestRetryPolicy
from services.worker.rate_limits.waits import MAX_RETRY_AFTER_SECONDS, Backoff

BACKOFF = Backoff(first_seconds=1.0, max_seconds=10.0)
POLICY = RequestRetryPolicy(BACKOFF, max_tries=3)
DRAWS = 2000


def test_a_refusal_is_final() -> None:
    assert POLICY.delay_seconds(RequestRefused("no"), 1) is None


@pytest.mark.parametrize(("times", "maximum"), [(1, 1.0), (2, 2.0), (4, 8.0), (5, 10.0), (5000, 10.0)])
def test_the_wait_doubles_up_to_the_longest_and_is_drawn_from_the_whole_span(
    times: int, maximum: float
) -> None:
    draws = [BACKOFF.seconds(times) for _ in range(DRAWS)]
    assert max(draws) <= maximum
    assert max(draws) > 0.95 * maximum
    assert min(draws) < 0.05 * maximum


def test_tries_are_used_up() -> None:
    assert POLICY.delay_seconds(ProviderFailed("500"), 2) is not None
    assert POLICY.delay_seconds(ProviderFailed("500"), 3) is None


def test_retry_after_is_the_least_delay_with_jitter_on_top() -> None:
    draws = [POLICY.delay_seconds(ProviderFailed("503", retry_after_seconds=7), 1) for _ in range(DRAWS)]
    waits = [draw for draw in draws if draw is not None]
    assert len(waits) == DRAWS
    assert 7.0 <= min(waits) < 7.1
    assert 7.9 < max(waits) <= 8.0


def test_a_day_that_the_provider_names_is_not_waited_for() -> None:
    delay = POLICY.delay_seconds(ProviderFailed("503", retry_after_seconds=86400), 1)
    assert delay is not None
    assert MAX_RETRY_AFTER_SECONDS <= delay <= MAX_RETRY_AFTER_SECONDS + 1
