"""A provider that wants to be left alone for a day: asked by one request a minute, also by ten workers."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from services.scheduler.rate_limits.adaptive_limit import AdaptiveLimit
from services.scheduler.rate_limits.assign_quotas import quota_for
from services.scheduler.rate_limits.rate_meter import RateMeter
from services.scheduler.rate_limits.rate_report import RateReport
from services.worker.rate_limits.backoff import LONGEST_HEEDED_SECONDS, Backoff
from services.worker.rate_limits.limiter import Granted, Pace, Paces
from tests.fakes.virtual_time import LoopClock, in_virtual_time

A_DAY = 86400.0
CLOCK = LoopClock()


class Provider:
    """Refuses until it is opened, and tells what its words are worth."""

    def __init__(self) -> None:
        self.is_open = False
        self.refused: list[float] = []
        self.taken: list[float] = []

    async def ask_through(self, pace: Pace) -> None:
        """As one sample does: again and again until it is answered."""
        while True:
            await pace.turn()
            pace.sends()
            await asyncio.sleep(0.1)
            if self.is_open:
                self.taken.append(CLOCK.monotonic())
                pace.took()
                return
            self.refused.append(CLOCK.monotonic())
            pace.refused(A_DAY)


class Leader:
    """The leader's own rules over real paces; words take as long as in NATS."""

    def __init__(self, paces: list[Pace]) -> None:
        self._paces = paces
        self._meter = RateMeter()
        self._limit = AdaptiveLimit(CLOCK.monotonic())
        self._limited = dict.fromkeys([pace.name for pace in paces], 0)

    async def lead(self) -> None:
        for look in range(10**9):
            await asyncio.sleep(0.25)
            for pace in self._paces:
                if look % 4 == 0 or pace.limited > self._limited[pace.name]:
                    self._report(pace)
            if look % 2 == 0:
                grant = quota_for(self._meter, self._limit, CLOCK.monotonic(), CLOCK.now())
                for pace in self._paces:
                    rate = grant.requests_per_second
                    share = None if rate is None else grant.shares[pace.name] * rate
                    pace.grant(Granted(share, None, grant.resume_at))

    def _report(self, pace: Pace) -> None:
        self._limited[pace.name] = pace.limited
        resume_at = pace.told_to_resume_at
        told = resume_at if resume_at and resume_at > CLOCK.now() else None
        report = RateReport(pace.name, "p", pace.sent, pace.limited, pace.waiting, told)
        self._meter.record(report, CLOCK.monotonic())


@pytest.fixture
def provider() -> Provider:
    return Provider()


def a_pace(name: str = "w") -> Pace:
    return Pace(name, CLOCK, Backoff())


@in_virtual_time
async def test_one_request_a_minute_asks_whether_the_provider_still_refuses(provider: Provider) -> None:
    pace = a_pace()
    async with asyncio.TaskGroup() as group:
        samples = [group.create_task(provider.ask_through(pace)) for _ in range(16)]
        await asyncio.sleep(1)
        at_once = len(provider.refused)
        await asyncio.sleep(600)
        assert 8 <= len(provider.refused) - at_once <= 10
        provider.is_open = True
        await asyncio.wait(samples, timeout=1.2 * LONGEST_HEEDED_SECONDS)
        assert all(sample.done() for sample in samples)


@in_virtual_time
async def test_ten_workers_that_hear_of_each_other_ask_little_more_than_one(provider: Provider) -> None:
    paces = [a_pace(f"w{number}") for number in range(10)]
    leading = asyncio.create_task(Leader(paces).lead())
    samples = [asyncio.create_task(provider.ask_through(pace)) for pace in paces for _ in range(8)]
    await asyncio.sleep(30)
    at_once = len(provider.refused)
    await asyncio.sleep(1800)
    assert 25 <= len(provider.refused) - at_once <= 90
    provider.is_open = True
    await asyncio.sleep(1.3 * LONGEST_HEEDED_SECONDS)
    assert provider.taken
    # A rate that was found while it refused is raised step by step.
    await asyncio.wait(samples, timeout=600)
    assert all(sample.done() for sample in samples)
    leading.cancel()


@in_virtual_time
async def test_a_grant_with_a_time_far_off_is_no_word_for_longer() -> None:
    """Such as that of a leader whose clock is wrong."""
    pace = a_pace()
    pace.grant(Granted(resume_at=CLOCK.now() + timedelta(days=1)))
    await asyncio.wait_for(pace.turn(), 1.2 * LONGEST_HEEDED_SECONDS)


@in_virtual_time
async def test_what_is_worth_telling_is_told_with_its_end() -> None:
    pace = a_pace()
    assert pace.held_until() is None
    pace.refused(1.0)
    assert pace.held_until() is None
    pace.refused(20.0)
    held_until = pace.held_until()
    assert held_until is not None
    assert timedelta(seconds=20) <= held_until - CLOCK.now() <= timedelta(seconds=25)
    await pace.turn()
    await pace.turn()
    assert pace.held_until() is None


@in_virtual_time
async def test_servers_that_wait_are_told_by_what_orders_call_them() -> None:
    paces = Paces(CLOCK, Backoff(), "openai", "http://one.test/v1/")
    paces.of("http://two.test")
    assert not paces.throttled_servers()
    paces.own.resume_in(20)
    paces.of("http://three.test").resume_in(20)
    assert set(paces.throttled_servers()) == {"", "http://one.test/v1", "http://three.test"}
