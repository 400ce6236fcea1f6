"""When a sample is asked again."""

from __future__ import annotations

import pytest

from services.worker.engine import EngineFailure, ProviderFailed, RateLimited, RequestRefused
from services.worker.retry_policy import RetryPolicy

POLICY = RetryPolicy(max_tries=3, first_delay_seconds=1.0, longest_delay_seconds=10.0)


def test_a_refusal_is_final() -> None:
    assert POLICY.delay_seconds(RequestRefused("no"), 1, 0.5) is None


@pytest.mark.parametrize(("tries", "longest"), [(1, 1.0), (2, 2.0)])
def test_the_wait_doubles_and_is_drawn_from_the_whole_span(tries: int, longest: float) -> None:
    failure = ProviderFailed("500")
    assert POLICY.delay_seconds(failure, tries, 1.0) == longest
    assert POLICY.delay_seconds(failure, tries, 0.0) == 0.0


def test_tries_are_used_up() -> None:
    assert POLICY.delay_seconds(ProviderFailed("500"), 3, 0.5) is None


def test_a_rate_limit_is_tried_without_end_and_the_wait_is_bounded() -> None:
    assert POLICY.delay_seconds(RateLimited("429"), 5000, 1.0) == 10.0


@pytest.mark.parametrize(
    "failure", [RateLimited("429", retry_after_seconds=7), ProviderFailed("503", retry_after_seconds=7)]
)
def test_the_provider_says_how_long_at_least(failure: EngineFailure) -> None:
    assert POLICY.delay_seconds(failure, 1, 0.0) == 7.0
    assert POLICY.delay_seconds(failure, 2, 1.0) == 8.0
