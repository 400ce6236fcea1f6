"""Admission to slots, and preemption."""

import random
from datetime import timedelta

import pytest

from proctor.values.priority import Priority
from proctor.values.run import RunId
from services.scheduler.limits.queue_limits import QueueLimits
from services.scheduler.runs.admission.run_slots import (
    MAX_PLANNING,
    RunSlot,
    SlotChanges,
    SlotRequest,
    assign_slots,
    expected_slots,
)
from tests.fakes.scheduler.surroundings import START
from tests.fakes.scheduler_rules import queue_limits

SECOND = timedelta(seconds=1)
LIMITS = queue_limits(max_running_runs=3, min_run_time=timedelta(seconds=60))


def slot(
    name: str, stayed: float = 60, priority: Priority = Priority.NORMAL, *, planned: bool = True
) -> RunSlot:
    """Of the user whose name it begins with."""
    return RunSlot(RunId(name), name[0], priority, START - timedelta(seconds=stayed), planned)


def request(name: str, priority: Priority = Priority.NORMAL) -> SlotRequest:
    return SlotRequest(RunId(name), name[0], priority)


def moves(admitted: str, preempted: str = "") -> SlotChanges:
    names = (admitted.split(), preempted.split())
    first, second = ([RunId(name) for name in each] for each in names)
    return SlotChanges(first, second)


def settle(
    slots: list[RunSlot], slot_requests: list[SlotRequest], limits: QueueLimits = LIMITS
) -> SlotChanges:
    settled = assign_slots(slots, slot_requests, limits, START)
    running = len(slots) - len(settled.preempted) + len(settled.admitted)
    assert running <= max(limits.max_running_runs, len(slots))
    return settled


def test_free_slots_go_to_the_first_in_order() -> None:
    slot_requests = [request(name) for name in ("b1", "c1", "d1")]
    assert settle([slot("a1", 0)], slot_requests) == moves("b1 c1")


def test_no_run_is_preempted_by_runs_of_the_same_user() -> None:
    assert settle([slot("a1"), slot("a2"), slot("a3")], [request("a4")]) == moves("")


def test_longest_run_of_the_user_with_the_most_slots_is_preempted() -> None:
    slots = [slot("b1", 900), slot("a1", 70), slot("a2", 80)]
    assert settle(slots, [request("c1")]) == moves("c1", "a2")


def test_equal_shares_stay_as_they_are() -> None:
    slots = [slot("a1", 900), slot("b1", 900), slot("c1", 900)]
    assert settle(slots, [request("a2"), request("b2")]) == moves("")


def test_user_without_a_slot_alternates_with_those_who_have_one() -> None:
    slots = [slot("a1", 100), slot("b1", 200), slot("c1", 300)]
    slot_requests = [request("d1"), request("e1")]
    assert settle(slots, slot_requests) == moves("d1 e1", "c1 b1")


def test_no_equal_takes_a_slot_before_the_minimum_run_time_is_over() -> None:
    slots = [slot("a1", 59), slot("a2", 59), slot("a3", 59)]
    assert settle(slots, [request("b1")]) == moves("")


def test_planning_is_not_broken_off_for_an_equal() -> None:
    slots = [slot("a1", 900, planned=False), slot("a2", 70), slot("a3", 60)]
    assert settle(slots, [request("b1")]) == moves("b1", "a2")


def test_more_urgent_run_takes_the_slot_of_the_least_urgent_at_once() -> None:
    slots = [slot("a1", 0, Priority.LOW, planned=False), slot("b1", 0), slot("c1", 0)]
    assert settle(slots, [request("a2", Priority.HIGH)]) == moves("a2", "a1")


def test_urgent_run_of_a_user_with_many_slots_is_urgent_all_the_same() -> None:
    slots = [slot("a1", 0, Priority.HIGH), slot("a2", 0, Priority.HIGH), slot("b1", 0)]
    assert settle(slots, [request("a3", Priority.HIGH)]) == moves("a3", "b1")


def test_less_urgent_run_takes_no_slot_however_long_it_waits() -> None:
    slots = [slot(name, 10_000, Priority.HIGH) for name in ("a1", "a2", "a3")]
    assert settle(slots, [request("b1")]) == moves("")


def test_what_is_admitted_now_gives_no_slot_away_now() -> None:
    limits = queue_limits(max_running_runs=3, min_run_time=timedelta(0))
    settled = settle([slot("a1"), slot("a2")], [request("a3"), request("b1"), request("c1")], limits)
    assert settled == moves("a3 b1 c1", "a1 a2")


def test_lowered_limit_takes_no_slot_away_and_gives_none_beyond_those_there_are() -> None:
    """They change hands as ever: what is urgent is not shut out until all that runs has ended."""
    limits = queue_limits(max_running_runs=1, min_run_time=timedelta(0))
    slots = [slot("a1", 9, Priority.LOW), slot("a2", 8, Priority.LOW), slot("b1", 7, Priority.LOW)]
    slot_requests = [request("c1", Priority.HIGH), request("d1", Priority.LOW)]
    assert settle(slots, slot_requests, limits) == moves("c1 d1", "a1 a2")
    assert settle(slots[:2], [request("a3", Priority.LOW)], limits) == moves("")


def test_user_with_few_slots_gives_none_while_one_with_more_could() -> None:
    slots = [slot("a1", 300, planned=False), slot("a2", 300, planned=False), slot("b1", 900)]
    assert settle(slots, [request("c1")]) == moves("")
    late = MAX_PLANNING.total_seconds()
    assert settle([slot("a1", late, planned=False), *slots[1:]], [request("c1")]) == moves("c1", "a1")


@pytest.mark.parametrize("min_run_time", [0, 2, 4.9])
def test_no_run_is_preempted_by_an_equal_before_its_minimum_run_time(min_run_time: float) -> None:
    limits = queue_limits(max_running_runs=1, min_run_time=timedelta(seconds=min_run_time))
    assert settle([slot("a1", 4.9)], [request("b1")], limits) == moves("")
    assert settle([slot("a1", 5)], [request("b1")], limits) == moves("b1", "a1")


def test_what_is_foreseen_is_what_happens() -> None:
    """The latest estimated time is the first at which the slots are given."""
    chance = random.Random(3)
    for _ in range(300):
        planned, run_times = chance.choices([True, False], k=3), chance.choices(range(700), k=3)
        slots = [
            slot(f"{chance.choice('ab')}{index}", run_times[index], planned=planned[index])
            for index in range(3)
        ]
        first = next(expected_slots(slots, [request("c1")], LIMITS, START), None)
        assert first is not None
        assert first.preempted is not None
        due = START + timedelta(seconds=first.latest_seconds)
        assert assign_slots(slots, [request("c1")], LIMITS, due).preempted == [first.preempted.run_id]
        assert (
            not first.latest_seconds
            or not assign_slots(slots, [request("c1")], LIMITS, due - SECOND).preempted
        )
