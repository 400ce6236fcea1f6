"""Who gets a place, and who gives one away."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from services.scheduler.runs.places import (
    LONGEST_PLANNING,
    Claim,
    Place,
    PlaceMoves,
    foreseen_turns,
    settle_places,
)
from services.scheduler.runs.queue_limits import QueueLimits
from services.scheduler.runs.run import RunId
from services.scheduler.runs.run_order import Priority
from tests.fakes.scheduler_world import START

SECOND = timedelta(seconds=1)
LIMITS = QueueLimits(max_running=3, min_run_time=timedelta(seconds=60))


def place(
    name: str, stayed: float = 60, priority: Priority = Priority.NORMAL, *, planned: bool = True
) -> Place:
    """Of the user whose name it begins with."""
    return Place(RunId(name), name[0], priority, START - timedelta(seconds=stayed), planned)


def claim(name: str, priority: Priority = Priority.NORMAL) -> Claim:
    return Claim(RunId(name), name[0], priority)


def moves(admitted: str, gave_way: str = "") -> PlaceMoves:
    names = (admitted.split(), gave_way.split())
    return PlaceMoves(*([RunId(name) for name in each] for each in names))


def settle(places: list[Place], claims: list[Claim], limits: QueueLimits = LIMITS) -> PlaceMoves:
    settled = settle_places(places, claims, limits, START)
    running = len(places) - len(settled.gave_way) + len(settled.admitted)
    assert running <= max(limits.max_running, len(places))
    return settled


def test_free_places_go_to_the_first_in_order() -> None:
    claims = [claim(name) for name in ("b1", "c1", "d1")]
    assert settle([place("a1", 0)], claims) == moves("b1 c1")


def test_nobody_gives_way_to_runs_of_the_same_user() -> None:
    assert settle([place("a1"), place("a2"), place("a3")], [claim("a4")]) == moves("")


def test_run_that_stayed_longest_of_the_greediest_user_gives_way() -> None:
    places = [place("b1", 900), place("a1", 70), place("a2", 80)]
    assert settle(places, [claim("c1")]) == moves("c1", "a2")


def test_equal_shares_stay_as_they_are() -> None:
    places = [place("a1", 900), place("b1", 900), place("c1", 900)]
    assert settle(places, [claim("a2"), claim("b2")]) == moves("")


def test_user_without_a_place_takes_turns_with_those_who_have_one() -> None:
    places = [place("a1", 100), place("b1", 200), place("c1", 300)]
    claims = [claim("d1"), claim("e1")]
    assert settle(places, claims) == moves("d1 e1", "c1 b1")


def test_no_equal_takes_a_place_before_the_stay_is_over() -> None:
    places = [place("a1", 59), place("a2", 59), place("a3", 59)]
    assert settle(places, [claim("b1")]) == moves("")


def test_planning_is_not_broken_off_for_an_equal() -> None:
    places = [place("a1", 900, planned=False), place("a2", 70), place("a3", 60)]
    assert settle(places, [claim("b1")]) == moves("b1", "a2")


def test_more_urgent_run_takes_the_place_of_the_least_urgent_at_once() -> None:
    places = [place("a1", 0, Priority.LOW, planned=False), place("b1", 0), place("c1", 0)]
    assert settle(places, [claim("a2", Priority.HIGH)]) == moves("a2", "a1")


def test_urgent_run_of_a_user_with_many_places_is_urgent_all_the_same() -> None:
    places = [place("a1", 0, Priority.HIGH), place("a2", 0, Priority.HIGH), place("b1", 0)]
    assert settle(places, [claim("a3", Priority.HIGH)]) == moves("a3", "b1")


def test_less_urgent_run_takes_no_place_however_long_it_waits() -> None:
    places = [place(name, 10_000, Priority.HIGH) for name in ("a1", "a2", "a3")]
    assert settle(places, [claim("b1")]) == moves("")


def test_what_is_admitted_now_gives_no_place_away_now() -> None:
    limits = QueueLimits(max_running=3, min_run_time=timedelta(0))
    settled = settle([place("a1"), place("a2")], [claim("a3"), claim("b1"), claim("c1")], limits)
    assert settled == moves("a3 b1 c1", "a1 a2")


def test_lowered_limit_takes_no_place_away_and_gives_none_beyond_those_there_are() -> None:
    """They change hands as ever: what is urgent is not shut out until all that runs has ended."""
    limits = QueueLimits(max_running=1, min_run_time=timedelta(0))
    places = [place("a1", 9, Priority.LOW), place("a2", 8, Priority.LOW), place("b1", 7, Priority.LOW)]
    claims = [claim("c1", Priority.HIGH), claim("d1", Priority.LOW)]
    assert settle(places, claims, limits) == moves("c1 d1", "a1 a2")
    assert settle(places[:2], [claim("a3", Priority.LOW)], limits) == moves("")


def test_user_with_few_places_gives_none_while_one_with_more_could() -> None:
    places = [place("a1", 300, planned=False), place("a2", 300, planned=False), place("b1", 900)]
    assert settle(places, [claim("c1")]) == moves("")
    late = LONGEST_PLANNING.total_seconds()
    assert settle([place("a1", late, planned=False), *places[1:]], [claim("c1")]) == moves("c1", "a1")


@pytest.mark.parametrize("min_run_time", [0, 2, 4.9])
def test_nobody_gives_way_to_an_equal_before_it_can_have_done_anything(min_run_time: float) -> None:
    limits = QueueLimits(max_running=1, min_run_time=timedelta(seconds=min_run_time))
    assert settle([place("a1", 4.9)], [claim("b1")], limits) == moves("")
    assert settle([place("a1", 5)], [claim("b1")], limits) == moves("b1", "a1")


def test_run_that_is_being_closed_gives_no_place_away() -> None:
    closing = replace(place("a1"), is_closing=True)
    assert settle([closing, place("a2"), place("b1")], [claim("c1", Priority.HIGH)]) == moves("c1", "a2")


def test_what_is_foreseen_is_what_happens() -> None:
    """The latest time that is told is the first at which the places are given."""
    chance = random.Random(3)
    for _ in range(300):
        planned, stays = chance.choices([True, False], k=3), chance.choices(range(700), k=3)
        places = [
            place(f"{chance.choice('ab')}{index}", stays[index], planned=planned[index]) for index in range(3)
        ]
        first = next(foreseen_turns(places, [claim("c1")], LIMITS, START), None)
        assert first is not None
        assert first.giver is not None
        due = START + timedelta(seconds=first.latest_seconds)
        assert settle_places(places, [claim("c1")], LIMITS, due).gave_way == [first.giver.run_id]
        assert (
            not first.latest_seconds
            or not settle_places(places, [claim("c1")], LIMITS, due - SECOND).gave_way
        )
