"""Providers that are asked now, as the queue shows them: workers added up by API key."""

from datetime import timedelta

from services.scheduler.rate_limits.rate_meter import (
    ProviderRate,
    RateLimitTracker,
    RateReport,
    provider_rates,
)
from tests.fakes.scheduler.surroundings import START

POOL_OF = {"w1": "remote", "w2": "remote", "w3": "other"}
GROUPS = {"remote": "remote", "other": "other"}


def rates(*reports: tuple[float, RateReport], now: float = 10.0) -> list[ProviderRate]:
    tracker = RateLimitTracker(GROUPS)
    for at, report in reports:
        tracker.record(POOL_OF[report.worker_id], report, at)
    return provider_rates(tracker, now, START)


def test_workers_of_one_key_are_added_up_and_keys_stand_by_themselves() -> None:
    found = rates(
        (8.0, RateReport("w1", "key", sent=10, rate_limited=2)),
        (
            10.0,
            RateReport(
                "w1",
                "key",
                sent=20,
                rate_limited=4,
                requests_waiting_for_quota=3,
                allowed_requests_per_second=9.0,
            ),
        ),
        (10.0, RateReport("w2", "key", requests_waiting_for_quota=1, allowed_requests_per_second=7.0)),
        (10.0, RateReport("w3", "second key")),
    )
    assert [rate.pools for rate in found] == [("other",), ("remote",)]
    assert found[1] == ProviderRate(("remote",), 4.0, 4, 2, 7.0, None, None)


def test_provider_without_requests_is_not_listed() -> None:
    assert rates((1.0, RateReport("w1", "key", sent=10))) == []


def test_pause_is_shown_until_it_is_over() -> None:
    later, earlier = START + timedelta(seconds=30), START - timedelta(seconds=1)
    assert rates((10.0, RateReport("w1", "key", resume_at=later)))[0].resume_at == later
    assert rates((10.0, RateReport("w1", "key", resume_at=earlier)))[0].resume_at is None
