"""The leader grants paces: what it tells workers, when, and what it takes over."""

from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from services.scheduler.rate_limits.assign_quotas import AssignQuotas, QuotaAssigner, quota_shares
from services.scheduler.rate_limits.rate_meter import RateLimitTracker
from services.scheduler.rate_limits.rate_report import RateQuota, RateReport
from tests.fakes.scheduler.surroundings import SetClock


@dataclass
class KeptGrants:
    """The bucket in memory."""

    grants: dict[str, RateQuota] = field(default_factory=dict)
    puts: int = 0

    async def put(self, pace: str, grant: RateQuota) -> None:
        self.grants[pace] = grant
        self.puts += 1

    async def drop(self, pace: str) -> None:
        del self.grants[pace]

    async def stored(self) -> dict[str, RateQuota]:
        return dict(self.grants)


class Stand:
    def __init__(self, **stored: RateQuota) -> None:
        self.grants = KeptGrants(dict(stored))
        self.clock = SetClock()
        self.tracker = RateLimitTracker()
        self.term = QuotaAssigner(AssignQuotas(self.tracker, self.grants, self.clock))

    async def after(self, seconds: float, *reports: RateReport) -> RateQuota | None:
        """What is granted then, with these reports having come."""
        self.clock.seconds += seconds
        for report in reports:
            self.tracker.record(report, self.clock.monotonic())
        await self.term.settle_all()
        return self.grants.grants.get("p")


def reports(second: float, refused: int = 0, **more: object) -> list[RateReport]:
    """Two workers that send 50 requests a second each."""
    sent = int(50 * second) + refused
    return [RateReport(name, "p", sent, refused, 5, **more) for name in ("w1", "w2")]  # type: ignore[arg-type]  # names are checked by RateReport


async def test_nothing_is_granted_while_nothing_is_limited() -> None:
    harness = Stand()
    for second in range(5):
        assert await harness.after(1, *reports(second)) is None
    assert harness.grants.puts == 0


async def test_what_was_taken_while_others_were_refused_is_the_limit() -> None:
    harness = Stand()
    for second in range(3):
        await harness.after(1, *reports(second))
    grant = await harness.after(1, *reports(3, refused=30))
    assert grant is not None
    assert grant.requests_per_second == pytest.approx(98.0)
    assert grant.shares == pytest.approx({"w1": 0.5, "w2": 0.5})


async def test_a_new_leader_takes_the_grant_over() -> None:
    harness = Stand(p=RateQuota(requests_per_second=40.0))
    grant = await harness.after(1, *reports(0))
    assert grant is not None
    assert grant.requests_per_second == 40.0
    assert set(grant.shares) == {"w1", "w2"}


async def test_a_grant_that_stays_is_said_again_only_now_and_then() -> None:
    harness = Stand(p=RateQuota(requests_per_second=40.0))
    idle = [RateReport(name, "p", 7, 0, 0) for name in ("w1", "w2")]
    for _ in range(40):
        await harness.after(0.5, *idle)
    assert harness.grants.puts == 2


async def test_what_the_provider_allows_and_when_it_wants_to_be_asked_is_passed_on() -> None:
    harness = Stand()
    soon = harness.clock.now() + timedelta(seconds=1.5)
    late = harness.clock.now() + timedelta(seconds=60)
    grant = await harness.after(1, *reports(0, allowed_tokens=1000.0, resume_at=soon))
    assert grant is not None
    assert (grant.tokens_per_second, grant.resume_at) == (980.0, None)
    grant = await harness.after(1, *reports(1, resume_at=late))
    assert grant is not None
    assert grant.resume_at == late


async def test_a_grant_that_nobody_reported_to_for_ten_minutes_is_dropped() -> None:
    harness = Stand(p=RateQuota(requests_per_second=40.0), old=RateQuota(requests_per_second=1.0))
    await harness.after(300, *reports(0))
    assert set(harness.grants.grants) == {"p", "old"}
    await harness.after(301)
    assert set(harness.grants.grants) == {"p"}
    await harness.after(301)
    assert not harness.grants.grants


async def test_a_worker_that_is_gone_has_no_share() -> None:
    harness = Stand(p=RateQuota(requests_per_second=40.0))
    await harness.after(1, *reports(0))
    grant = await harness.after(6, reports(1)[1])
    assert grant is not None
    assert grant.shares == {"w2": 1.0}


@pytest.mark.parametrize("demands", [{"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 0.0, "c": 99.0}, {"a": 5.0}])
def test_shares_sum_to_one_and_leave_something_for_everybody(demands: dict[str, float]) -> None:
    shares = quota_shares(demands)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert min(shares.values()) >= 0.02
    assert sorted(shares, key=lambda worker: (shares[worker], worker)) == sorted(
        demands, key=lambda worker: (demands[worker], worker)
    )


def test_a_thousand_workers_have_shares_too() -> None:
    shares = quota_shares({f"w{n}": float(n == 0) for n in range(1000)})
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["w0"] > 0.8
