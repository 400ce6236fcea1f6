"""How many workers a pool needs."""

import pytest

from services.scheduler.scaling.pool_demand import PoolDemand, PoolMoment, ScalingRule, next_demand

RULE = ScalingRule(backlog_seconds=600, load_seconds=300)


def demand(workers: int = 0, **speeds: float) -> PoolDemand:
    return PoolDemand("gpu", workers=workers, speeds=speeds)


def moment(
    samples: float, *, ready: int = 0, is_busy: bool = True, is_throttled: bool = False, speed: float = 0.0
) -> PoolMoment:
    return PoolMoment(
        backlog_samples={"m": samples} if samples else {},
        speeds={"m": speed} if speed else {},
        ready=ready,
        busy=ready if is_busy else 0,
        useful=samples / 10,
        is_throttled=is_throttled,
    )


def workers(before: PoolDemand, now: PoolMoment) -> int:
    return next_demand(before, now, RULE).workers


def test_first_backlog_gets_one_worker_which_shows_how_fast_it_is() -> None:
    assert workers(demand(), moment(100_000)) == 1


def test_known_speed_gives_the_workers_for_the_backlog_at_once() -> None:
    # 6,000 seconds of one worker in 600.
    assert workers(demand(m=2.0), moment(12_000)) == 10


def test_what_is_done_while_a_worker_loads_needs_none() -> None:
    # The four that are there do 1,200 of 6,000 seconds within the 300 of a load.
    assert workers(demand(4, m=2.0), moment(12_000, ready=4)) == 8
    assert workers(demand(4, m=2.0), moment(4 * 2 * 850, ready=4)) == 4


def test_more_workers_than_samples_in_flight_find_no_work() -> None:
    assert workers(demand(m=0.001), moment(25)) == 3


def test_workers_stay_while_they_have_work_and_leave_at_the_tail() -> None:
    assert workers(demand(8, m=2.0), moment(500, ready=8)) == 8
    assert workers(demand(8, m=2.0), moment(31, ready=8)) == 4
    assert workers(demand(8, m=2.0), moment(0, ready=8, is_busy=False)) == 0


def test_worker_that_holds_requests_of_no_run_finishes_them() -> None:
    assert workers(demand(8, m=2.0), moment(0, ready=8)) == 1
    assert workers(demand(0, m=2.0), moment(0, ready=8)) == 0


def test_workers_with_room_or_of_a_throttled_provider_get_no_company() -> None:
    assert workers(demand(2, m=2.0), moment(100_000, ready=2, is_busy=False)) == 2
    assert workers(demand(2, m=2.0), moment(100_000, ready=2, is_throttled=True)) == 2
    assert workers(demand(2, m=2.0), moment(100_000, ready=2)) > 50


def test_speed_follows_what_is_measured_and_survives_without_workers() -> None:
    after = demand(1)
    for _ in range(20):
        after = next_demand(after, moment(1000, ready=1, speed=4.0), RULE)
    assert after.speeds["m"] == pytest.approx(4.0)
    slower = next_demand(after, moment(1000, ready=1, speed=2.0), RULE)
    assert slower.speeds["m"] == pytest.approx(3.4)
    gone = next_demand(slower, moment(0), RULE)
    assert (gone.workers, gone.speeds["m"], gone.backlog_seconds("m")) == (0, slower.speeds["m"], 0)


def test_measured_load_time_replaces_the_assumed_one() -> None:
    now = PoolMoment(backlog_samples={"m": 12_000}, ready=4, busy=4, useful=1200, load_seconds=0.0)
    after = next_demand(demand(4, m=2.0), now, RULE)
    assert (after.load_seconds, after.workers) == (0.0, 10)
    again = next_demand(after, moment(12_000, ready=4), RULE)
    assert again.load_seconds == 0.0
