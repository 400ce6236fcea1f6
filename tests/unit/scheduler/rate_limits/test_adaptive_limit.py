"""The limit of a provider is found, kept and followed: by the leader's rules alone, on a simulated clock."""

import pytest

from services.scheduler.rate_limits.adaptive_limit import AdaptiveLimit
from services.scheduler.rate_limits.rate_meter import Measured
from tests.fakes.scheduler.simulated_rate_limits import SimulatedRateLimits

ALLOWED = 50.0


@pytest.mark.parametrize("names_a_time", [False, True])
@pytest.mark.parametrize(("allowed", "burst"), [(5, 10), (50, 20), (50, 50), (50, 500), (400, 400)])
def test_ten_workers_use_what_a_provider_allows_and_are_hardly_refused(
    allowed: float, burst: float, *, names_a_time: bool
) -> None:
    simulated = SimulatedRateLimits(allowed, burst=burst, names_a_time=names_a_time)
    simulated.run(60)
    start = simulated.now
    simulated.run(180)
    provider = simulated.provider
    assert provider.accepted_per_second(start, simulated.now) >= 0.9 * allowed
    assert provider.refused_share(start, simulated.now) <= 0.02


@pytest.mark.parametrize(("changed", "seconds"), [(25.0, 15), (10.0, 15), (100.0, 90)])
def test_a_limit_that_changes_is_followed(changed: float, seconds: float) -> None:
    simulated = SimulatedRateLimits(ALLOWED, burst=ALLOWED, names_a_time=False)
    simulated.run(90)
    bucket = simulated.provider.bucket
    bucket.rate = bucket.burst = changed
    simulated.run(seconds)
    start = simulated.now
    simulated.run(60)
    assert simulated.provider.accepted_per_second(start, simulated.now) >= 0.9 * changed
    assert simulated.provider.refused_share(start, simulated.now) <= 0.02


def test_without_a_leader_the_last_quota_holds_and_the_next_leader_takes_it_over() -> None:
    simulated = SimulatedRateLimits(ALLOWED, burst=ALLOWED, names_a_time=False)
    simulated.run(90)
    start, quota_rate = simulated.now, simulated.quota_rate
    simulated.run(20, has_leader=False)
    assert simulated.quota_rate == quota_rate
    simulated.change_leader()
    simulated.run(100)
    assert simulated.provider.accepted_per_second(start, simulated.now) >= 0.9 * ALLOWED
    assert simulated.provider.refused_share(start, simulated.now) <= 0.02


def test_a_worker_that_begins_late_comes_up_to_the_others() -> None:
    simulated = SimulatedRateLimits(ALLOWED, burst=ALLOWED, names_a_time=False)
    late = simulated.workers[0]
    late.needed = 0.0
    simulated.run(60)
    late.needed, sent, others = 100.0, late.sent, simulated.workers[1].sent
    simulated.run(30)
    assert late.sent - sent > 0.6 * (simulated.workers[1].sent - others)


def test_a_provider_that_refuses_no_request_is_not_limited() -> None:
    simulated = SimulatedRateLimits(1e9, burst=1e9, names_a_time=False, workers=2)
    simulated.run(5)
    assert simulated.quota_rate is None


def measured(rate_limited: int, accepted: float = 100.0, **more: float) -> Measured:
    return Measured(
        accepted_per_second=accepted,
        rate_limited=rate_limited,
        requests_waiting_for_quota=1,
        **more,  # type: ignore[arg-type]  # names are checked by Measured
    )


def test_the_headers_of_the_provider_are_the_upper_limit() -> None:
    limit = AdaptiveLimit(0.0)
    assert limit.step(measured(0, allowed_requests_per_second=200.0), 1.0) == pytest.approx(196.0)
    assert limit.step(measured(50, allowed_requests_per_second=200.0), 2.0) == pytest.approx(98.0)
    assert limit.step(measured(50, allowed_requests_per_second=50.0), 3.0) == pytest.approx(49.0)


def test_a_stray_refusal_limits_nothing() -> None:
    assert AdaptiveLimit(0.0).step(measured(1), 1.0) is None


def test_a_provider_that_takes_nothing_says_nothing_of_its_limit() -> None:
    limit = AdaptiveLimit(0.0, rate=40.0)
    assert limit.step(measured(500, accepted=0.0), 1.0) == 40.0


def test_one_wrong_figure_costs_no_more_than_half() -> None:
    limit = AdaptiveLimit(0.0, rate=40.0)
    assert limit.step(measured(500, accepted=0.1), 1.0) == 20.0


def test_refusals_of_what_was_sent_before_a_cut_count_once() -> None:
    limit = AdaptiveLimit(0.0, rate=100.0)
    assert limit.step(measured(100), 1.0) == 95.0
    assert limit.step(measured(200), 1.5) == 95.0
    assert limit.step(measured(300), 3.5) == pytest.approx(90.25)


def test_a_rate_grows_only_while_requests_wait() -> None:
    limit = AdaptiveLimit(0.0, rate=100.0)
    idle = Measured(accepted_per_second=10.0)
    assert [limit.step(idle, 10.0 * n) for n in range(1, 4)] == [100.0] * 3
    assert limit.step(measured(0), 40.0) == pytest.approx(102.0)
