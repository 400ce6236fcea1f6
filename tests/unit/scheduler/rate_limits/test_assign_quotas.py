"""The leader quotas rate limits: what it tells workers, when, and what it takes over."""

from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from services.scheduler.rate_limits.assign_quotas import (
    AssignQuotas,
    QuotaAssigner,
    QuotaKey,
    quota_shares,
)
from services.scheduler.rate_limits.rate_meter import RateLimitTracker, RateQuota, RateReport
from tests.fakes.scheduler.surroundings import SetClock

POOL = "remote"
# The first two share a key.
GROUPS = {POOL: POOL, "partner": POOL, "stranger": "stranger"}


@dataclass
class StoredQuotas:
    """The bucket in memory."""

    quotas: dict[QuotaKey, RateQuota] = field(default_factory=dict)
    puts: int = 0

    async def put(self, key: QuotaKey, quota: RateQuota) -> None:
        self.quotas[key] = quota
        self.puts += 1

    async def delete(self, key: QuotaKey) -> None:
        del self.quotas[key]

    async def stored(self) -> dict[QuotaKey, RateQuota]:
        return dict(self.quotas)


class Stand:
    def __init__(self, **stored: RateQuota) -> None:
        self.quotas = StoredQuotas({QuotaKey(POOL, key): quota for key, quota in stored.items()})
        self.clock = SetClock()
        self.tracker = RateLimitTracker(GROUPS)
        self.term = QuotaAssigner(AssignQuotas(self.tracker, self.quotas, self.clock))

    async def after(self, seconds: float, *reports: RateReport, pool: str = POOL) -> RateQuota | None:
        """What is granted the pool then, with these reports having come."""
        self.clock.seconds += seconds
        for report in reports:
            self.tracker.record(pool, report, self.clock.monotonic())
        await self.term.assign_all()
        return self.quotas.quotas.get(QuotaKey(pool, "p"))

    @property
    def keys(self) -> set[str]:
        return {key.rate_limit_key for key in self.quotas.quotas}


def reports(second: float, rate_limited: int = 0, **more: object) -> list[RateReport]:
    """Two workers that send 50 requests a second each."""
    sent = int(50 * second) + rate_limited
    return [RateReport(name, "p", sent, rate_limited, 5, **more) for name in ("w1", "w2")]  # type: ignore[arg-type]  # names are checked by RateReport


async def test_nothing_is_granted_while_nothing_is_limited() -> None:
    harness = Stand()
    for second in range(5):
        assert await harness.after(1, *reports(second)) is None
    assert harness.quotas.puts == 0


async def test_what_was_taken_while_others_were_refused_is_the_limit() -> None:
    harness = Stand()
    for second in range(3):
        await harness.after(1, *reports(second))
    quota = await harness.after(1, *reports(3, rate_limited=30))
    assert quota is not None
    assert quota.requests_per_second == pytest.approx(98.0)
    assert quota.shares == pytest.approx({"w1": 0.5, "w2": 0.5})


async def test_a_new_leader_takes_the_quota_over() -> None:
    harness = Stand(p=RateQuota(requests_per_second=40.0))
    quota = await harness.after(1, *reports(0))
    assert quota is not None
    assert quota.requests_per_second == 40.0
    assert set(quota.shares) == {"w1", "w2"}


async def test_a_quota_that_stays_is_said_again_only_now_and_then() -> None:
    harness = Stand(p=RateQuota(requests_per_second=40.0))
    idle = [RateReport(name, "p", 7, 0, 0) for name in ("w1", "w2")]
    for _ in range(40):
        await harness.after(0.5, *idle)
    assert harness.quotas.puts == 2


async def test_what_the_provider_allows_and_when_it_may_be_asked_is_passed_on() -> None:
    harness = Stand()
    soon = harness.clock.now() + timedelta(seconds=1.5)
    late = harness.clock.now() + timedelta(seconds=60)
    quota = await harness.after(1, *reports(0, allowed_tokens_per_second=1000.0, resume_at=soon))
    assert quota is not None
    assert (quota.tokens_per_second, quota.resume_at) == (980.0, None)
    quota = await harness.after(1, *reports(1, resume_at=late))
    assert quota is not None
    assert quota.resume_at == late


async def test_a_quota_without_a_report_for_ten_minutes_is_dropped() -> None:
    harness = Stand(p=RateQuota(requests_per_second=40.0), old=RateQuota(requests_per_second=1.0))
    await harness.after(300, *reports(0))
    assert harness.keys == {"p", "old"}
    await harness.after(301)
    assert harness.keys == {"p"}
    await harness.after(301)
    assert not harness.quotas.quotas


async def test_a_worker_that_is_gone_has_no_share() -> None:
    harness = Stand(p=RateQuota(requests_per_second=40.0))
    await harness.after(1, *reports(0))
    quota = await harness.after(6, reports(1)[1])
    assert quota is not None
    assert quota.shares == {"w2": 1.0}


async def test_pools_that_share_a_key_share_its_limit_and_each_gets_the_shares_of_its_workers() -> None:
    harness = Stand(p=RateQuota(requests_per_second=40.0))
    await harness.after(1, RateReport("w1", "p", requests_waiting_for_quota=5))
    partner = await harness.after(0, RateReport("w1", "p", requests_waiting_for_quota=5), pool="partner")
    own = harness.quotas.quotas[QuotaKey(POOL, "p")]
    assert partner is not None
    assert partner.requests_per_second == own.requests_per_second == 40.0
    assert partner.shares == own.shares == {"w1": 0.5}


async def test_reports_under_the_key_of_another_group_change_nothing_for_it() -> None:
    harness, alone = Stand(), Stand()
    for second in range(3):
        await harness.after(1, *reports(second))
        await alone.after(1, *reports(second))
    forged = RateReport("w1", "p", 0, 10**6, 10**6, allowed_requests_per_second=0.01)
    await harness.after(0, forged, pool="stranger")
    found = await harness.after(1, *reports(3, rate_limited=30))
    assert found == await alone.after(1, *reports(3, rate_limited=30))
    limited = harness.quotas.quotas[QuotaKey("stranger", "p")].requests_per_second
    assert limited == pytest.approx(0.0098)


async def test_invented_keys_are_bounded_and_their_quotas_are_removed() -> None:
    harness = Stand(old=RateQuota(requests_per_second=40.0))
    for number in range(4):
        invented = [
            RateReport("w1", f"{number}-{key}", allowed_requests_per_second=1.0) for key in range(300)
        ]
        await harness.after(1, *invented, pool="stranger")
    assert len(harness.quotas.quotas) == 257 + 1
    assert QuotaKey(POOL, "old") in harness.quotas.quotas


@pytest.mark.parametrize("needed", [{"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 0.0, "c": 99.0}, {"a": 5.0}])
def test_shares_sum_to_one_and_leave_something_for_each_worker(needed: dict[str, float]) -> None:
    shares = quota_shares(needed)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert min(shares.values()) >= 0.02
    assert sorted(shares, key=lambda worker: (shares[worker], worker)) == sorted(
        needed, key=lambda worker: (needed[worker], worker)
    )


def test_a_thousand_workers_have_shares_too() -> None:
    shares = quota_shares({f"w{n}": float(n == 0) for n in range(1000)})
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["w0"] > 0.8
