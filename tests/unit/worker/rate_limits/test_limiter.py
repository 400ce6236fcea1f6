"""How fast a worker asks one provider under one key."""

import asyncio
import hashlib
from datetime import timedelta

import pytest

from services.worker.rate_limits.limiter import (
    AllowedLimits,
    ProviderRateLimiter,
    QuotaShare,
    RateLimiters,
    rate_limit_key,
)
from services.worker.rate_limits.waits import Backoff
from tests.fakes.eventually import eventually
from tests.fakes.virtual_time import LoopClock, in_virtual_time

BACKOFF = Backoff(first_seconds=0.02)
KEY = "sk-secret-of-the-test"


@pytest.fixture
def limiter() -> ProviderRateLimiter:
    return ProviderRateLimiter("p", LoopClock(), BACKOFF)


async def seconds_of(limiter: ProviderRateLimiter, requests: int) -> float:
    started = LoopClock().monotonic()
    async with asyncio.TaskGroup() as group:
        for _ in range(requests):
            group.create_task(limiter.acquire())
    return LoopClock().monotonic() - started


@in_virtual_time
async def test_nothing_waits_while_no_limit_is_known(limiter: ProviderRateLimiter) -> None:
    acquiring = limiter.acquire()
    with pytest.raises(StopIteration):  # it ended without waiting once
        acquiring.send(None)


@in_virtual_time
async def test_requests_go_out_at_the_granted_rate(limiter: ProviderRateLimiter) -> None:
    limiter.apply_quota(QuotaShare(requests=200.0))
    assert 0.35 < await seconds_of(limiter, 100) < 0.9


@in_virtual_time
async def test_a_slow_rate_lets_one_at_a_time_through(limiter: ProviderRateLimiter) -> None:
    limiter.apply_quota(QuotaShare(requests=4.0))
    assert 0.6 < await seconds_of(limiter, 3) < 1.5


@in_virtual_time
async def test_requests_wait_for_their_tokens(limiter: ProviderRateLimiter) -> None:
    limiter.on_accepted(50)
    limiter.apply_quota(QuotaShare(tokens=5000.0))
    assert 0.3 < await seconds_of(limiter, 50) < 0.9


@in_virtual_time
async def test_a_rate_that_rises_meanwhile_applies(limiter: ProviderRateLimiter) -> None:
    limiter.apply_quota(QuotaShare(requests=1000.0))
    await seconds_of(limiter, 1)
    limiter.apply_quota(QuotaShare(requests=0.01))
    waiting = asyncio.create_task(limiter.acquire())
    await eventually(lambda: limiter.requests_waiting_for_quota == 1, "it waits", 2)
    limiter.apply_quota(QuotaShare(requests=1000.0))
    await asyncio.wait_for(waiting, 2)


@in_virtual_time
async def test_one_retry_after_throttles_all_requests(
    limiter: ProviderRateLimiter,
) -> None:
    limiter.on_rate_limited(0.3)
    assert await seconds_of(limiter, 10) >= 0.3
    assert limiter.resume_at is not None
    assert limiter.resume_at <= LoopClock().now()


@in_virtual_time
async def test_rate_limited_requests_in_flight_together_throttle_once(limiter: ProviderRateLimiter) -> None:
    for _ in range(50):
        limiter.on_rate_limited(None)
    assert limiter.rate_limited == 50
    assert await seconds_of(limiter, 1) < 0.1


@in_virtual_time
async def test_resume_at_of_a_quota_throttles_this_worker(limiter: ProviderRateLimiter) -> None:
    limiter.apply_quota(QuotaShare(requests=1000.0, resume_at=LoopClock().now() + timedelta(seconds=0.3)))
    assert 0.28 < await seconds_of(limiter, 1) < 0.8


@in_virtual_time
async def test_waiting_requests_can_be_cancelled(limiter: ProviderRateLimiter) -> None:
    limiter.on_rate_limited(30.0)
    waiting = [asyncio.create_task(limiter.acquire()) for _ in range(5)]
    await eventually(lambda: limiter.requests_waiting_for_quota == 5, "all of them wait", 2)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    assert limiter.requests_waiting_for_quota == 0
    limiter._throttled_until = 0.0
    assert await seconds_of(limiter, 3) < 0.5


def test_allowed_limits_stay_where_headers_are_silent(limiter: ProviderRateLimiter) -> None:
    limiter.on_allowed(AllowedLimits(requests=10.0, tokens=500.0))
    limiter.on_allowed(AllowedLimits(requests=20.0))
    assert limiter.allowed == AllowedLimits(requests=20.0, tokens=500.0)


def test_rate_limit_key_hides_the_api_key_and_is_the_same_for_all_workers() -> None:
    name = rate_limit_key("openai", "https://example.org/v1/", KEY)
    assert name == rate_limit_key("openai", "https://example.org/v1", KEY)
    assert KEY not in name
    # No plain digest of it: weak keys could be tried by the million.
    assert name != hashlib.sha256(f"openai\nhttps://example.org/v1\n{KEY}".encode()).hexdigest()[:16]
    others = (("openai", "https://example.org/v1", None), ("grok", "https://example.org/v1", KEY),
              ("openai", "https://example.com/v1", KEY))  # fmt: skip
    assert len({name, *(rate_limit_key(*other) for other in others)}) == 4


def test_each_server_that_an_order_names_has_a_limiter_of_its_own() -> None:
    limiters = RateLimiters(
        clock=LoopClock(),
        backoff=BACKOFF,
        provider="openai",
        base_url="https://example.org/v1",
        api_key=KEY,
    )
    other = limiters.for_server("http://127.0.0.1:8000/v1/")
    assert limiters.for_server("") is limiters.for_server("https://example.org/v1") is limiters.own
    assert limiters.for_server("http://127.0.0.1:8000/v1") is other is limiters.by_key(other.key)
    assert other.key == rate_limit_key("openai", "http://127.0.0.1:8000/v1", None)
    for number in range(1000):
        limiters.for_server(f"http://127.0.0.1:{number}")
    assert len(list(limiters)) < 300
