"""Estimates are played through the slots of the queue, with a band, and are none where nothing tells."""

from dataclasses import replace

from services.scheduler.progress.run_speed import LONE_FACTOR
from services.scheduler.runs.admission.run_estimate import (
    NOW,
    CompletedRun,
    TimeEstimate,
    order_estimate,
    outcomes_estimate,
    start_estimates,
)
from services.scheduler.runs.orders.run_order import RunOrder

ORDER = RunOrder("toy", "openai/fake")


def past(seconds: float, total: int = 100, limit: int | None = None) -> CompletedRun:
    return CompletedRun((), limit, 1, total, seconds)


def exactly(seconds: float) -> TimeEstimate:
    return TimeEstimate(seconds, seconds, seconds)


def test_an_order_without_history_has_no_estimate() -> None:
    assert order_estimate(ORDER, []) is None


def test_an_order_of_another_size_has_none_where_its_size_is_not_known() -> None:
    assert order_estimate(replace(ORDER, limit=7), [past(10)]) is None
    assert order_estimate(replace(ORDER, limit=7, tasks=("choose",)), [past(50)]) == TimeEstimate(
        3.5, 1.75, 7
    )


def test_one_past_run_gives_a_band_by_the_stated_factor() -> None:
    estimated = order_estimate(replace(ORDER, rollouts=2), [past(10)])
    assert estimated == TimeEstimate(20, 20 / LONE_FACTOR, 20 * LONE_FACTOR)


def test_several_past_runs_give_a_band_from_the_fastest_to_the_slowest() -> None:
    assert order_estimate(ORDER, [past(10), past(20), past(60)]) == TimeEstimate(30, 10, 60)


def test_the_measured_speed_counts_and_the_history_gives_the_band() -> None:
    assert outcomes_estimate(50, [past(10), past(40)], seconds_per_outcome=0.2) == TimeEstimate(10, 5, 20)
    assert outcomes_estimate(50, [], seconds_per_outcome=0.2) == TimeEstimate(10, 5, 20)


def test_a_free_slot_is_had_at_once() -> None:
    assert start_estimates([exactly(9), exactly(5)], [exactly(1)], slots=3) == [NOW]
    assert start_estimates([None, None], [None], slots=3) == [NOW]


def test_each_takes_the_slot_that_gets_free_first() -> None:
    """Places get free at 5, 7 and 9; the waiting ones last 5, 10, 20 and 10 seconds."""
    waiting = [exactly(seconds) for seconds in (5, 10, 20, 10, 1)]
    starts = start_estimates([exactly(9), exactly(5), exactly(7)], waiting, slots=3)
    assert starts == [exactly(seconds) for seconds in (5, 7, 9, 10, 17)]


def test_the_band_is_played_through_as_well() -> None:
    starts = start_estimates([TimeEstimate(10, 5, 20)], [TimeEstimate(4, 2, 8), exactly(1)], slots=1)
    assert starts == [TimeEstimate(10, 5, 20), TimeEstimate(14, 7, 28)]


def test_a_run_without_an_estimate_keeps_its_slot() -> None:
    starts = start_estimates([None, exactly(5)], [exactly(3), None, exactly(1)], slots=2)
    assert starts == [TimeEstimate(5, 0, 5), TimeEstimate(8, 3, 8), None]


def test_a_lowered_limit_lets_the_first_ends_pass() -> None:
    assert start_estimates([exactly(1), exactly(5), exactly(9)], [None], slots=1) == [exactly(9)]
