"""Who gets a place, and who gives one away."""

from datetime import timedelta

from services.scheduler.runs.places import Claim, Place, PlaceMoves, settle_places
from services.scheduler.runs.queue_limits import QueueLimits
from services.scheduler.runs.run import RunId
from services.scheduler.runs.run_order import Priority
from tests.fakes.scheduler_world import START

LIMITS = QueueLimits(max_running=3, min_stay=timedelta(seconds=60))


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
    limits = QueueLimits(max_running=3, min_stay=timedelta(0))
    settled = settle([place("a1"), place("a2")], [claim("a3"), claim("b1"), claim("c1")], limits)
    assert settled == moves("a3 b1 c1", "a2 a1")


def test_lowered_limit_takes_no_place_away_and_gives_none() -> None:
    limits = QueueLimits(max_running=1, min_stay=timedelta(0))
    places = [place("a1"), place("a2"), place("a3")]
    assert settle(places, [claim("b1", Priority.HIGH)], limits) == PlaceMoves()
