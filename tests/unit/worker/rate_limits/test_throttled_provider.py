"""A provider that wants to be left alone for a day: asked by one request a minute, also by ten workers."""

import asyncio
from datetime import timedelta

import pytest

from services.scheduler.rate_limits.adaptive_limit import AdaptiveLimit
from services.scheduler.rate_limits.assign_quotas import quotas_for
from services.scheduler.rate_limits.rate_meter import RateMeter, RateReport
from services.worker.rate_limits.limiter import ProviderRateLimiter, QuotaShare, RateLimiters
from services.worker.rate_limits.waits import MAX_RETRY_AFTER_SECONDS, Backoff
from tests.fakes.virtual_time import LoopClock, in_virtual_time

A_DAY = 86400.0
CLOCK = LoopClock()


class Provider:
    """Refuses until it is opened, and tells what its words are worth."""

    def __init__(self) -> None:
        self.is_open = False
        self.refused: list[float] = []
        self.taken: list[float] = []

    async def ask_through(self, limiter: ProviderRateLimiter) -> None:
        """As one sample does: again and again until it is answered."""
        while True:
            await limiter.acquire()
            limiter.on_sent()
            await asyncio.sleep(0.1)
            if self.is_open:
                self.taken.append(CLOCK.monotonic())
                limiter.on_accepted()
                return
            self.refused.append(CLOCK.monotonic())
            limiter.on_rate_limited(A_DAY)


class Leader:
    """The leader's own rules over real limiters; words take as long as in NATS."""

    def __init__(self, limiters: list[ProviderRateLimiter]) -> None:
        self._limiters = limiters
        self._meter = RateMeter()
        self._limit = AdaptiveLimit(CLOCK.monotonic())
        self._limited = dict.fromkeys([limiter.key for limiter in limiters], 0)

    async def lead(self) -> None:
        for look in range(10**9):
            await asyncio.sleep(0.25)
            for limiter in self._limiters:
                if look % 4 == 0 or limiter.rate_limited > self._limited[limiter.key]:
                    self._report(limiter)
            if look % 2 == 0:
                quotas = quotas_for(self._meter, self._limit, CLOCK.monotonic(), CLOCK.now())
                quota = quotas["remote"]
                for limiter in self._limiters:
                    rate = quota.requests_per_second
                    share = None if rate is None else quota.shares[limiter.key] * rate
                    limiter.apply_quota(QuotaShare(share, None, quota.resume_at))

    def _report(self, limiter: ProviderRateLimiter) -> None:
        self._limited[limiter.key] = limiter.rate_limited
        resume_at = limiter.resume_at
        reported = resume_at if resume_at and resume_at > CLOCK.now() else None
        report = RateReport(
            limiter.key, "p", limiter.sent, limiter.rate_limited, limiter.requests_waiting_for_quota, reported
        )
        self._meter.record("remote", report, CLOCK.monotonic())


@pytest.fixture
def provider() -> Provider:
    return Provider()


def a_limiter(name: str = "w") -> ProviderRateLimiter:
    return ProviderRateLimiter(name, CLOCK, Backoff())


@in_virtual_time
async def test_one_request_a_minute_asks_whether_the_provider_still_refuses(provider: Provider) -> None:
    limiter = a_limiter()
    async with asyncio.TaskGroup() as group:
        samples = [group.create_task(provider.ask_through(limiter)) for _ in range(16)]
        await asyncio.sleep(1)
        at_once = len(provider.refused)
        await asyncio.sleep(600)
        assert 8 <= len(provider.refused) - at_once <= 10
        provider.is_open = True
        await asyncio.wait(samples, timeout=1.2 * MAX_RETRY_AFTER_SECONDS)
        assert all(sample.done() for sample in samples)


@in_virtual_time
async def test_ten_workers_together_send_little_more_than_one(provider: Provider) -> None:
    limiters = [a_limiter(f"w{number}") for number in range(10)]
    leading = asyncio.create_task(Leader(limiters).lead())
    samples = [asyncio.create_task(provider.ask_through(limiter)) for limiter in limiters for _ in range(8)]
    await asyncio.sleep(30)
    at_once = len(provider.refused)
    await asyncio.sleep(1800)
    assert 25 <= len(provider.refused) - at_once <= 90
    provider.is_open = True
    await asyncio.sleep(1.3 * MAX_RETRY_AFTER_SECONDS)
    assert provider.taken
    # A rate that was found while it refused is raised step by step.
    await asyncio.wait(samples, timeout=600)
    assert all(sample.done() for sample in samples)
    leading.cancel()


@in_virtual_time
async def test_a_quota_with_a_far_resume_at_is_capped() -> None:
    """Such as that of a leader whose clock is wrong."""
    limiter = a_limiter()
    limiter.apply_quota(QuotaShare(resume_at=CLOCK.now() + timedelta(days=1)))
    await asyncio.wait_for(limiter.acquire(), 1.2 * MAX_RETRY_AFTER_SECONDS)


@in_virtual_time
async def test_only_long_throttles_are_reported() -> None:
    limiter = a_limiter()
    assert limiter.reported_until() is None
    limiter.on_rate_limited(1.0)
    assert limiter.reported_until() is None
    limiter.on_rate_limited(20.0)
    reported_until = limiter.reported_until()
    assert reported_until is not None
    assert timedelta(seconds=20) <= reported_until - CLOCK.now() <= timedelta(seconds=25)
    await limiter.acquire()
    await limiter.acquire()
    assert limiter.reported_until() is None


@in_virtual_time
async def test_throttled_servers_are_reported_by_their_url() -> None:
    limiters = RateLimiters(clock=CLOCK, backoff=Backoff(), provider="openai", base_url="http://one.test/v1/")
    limiters.for_server("http://two.test")
    assert not limiters.throttled_servers()
    limiters.own.on_retry_after(20)
    limiters.for_server("http://three.test").on_retry_after(20)
    assert set(limiters.throttled_servers()) == {"", "http://one.test/v1", "http://three.test"}
