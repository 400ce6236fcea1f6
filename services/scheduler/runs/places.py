"""The places of the runs that are running: who gets one, and who gives one away so that nobody is starved."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from services.scheduler.runs.queue_limits import QueueLimits
from services.scheduler.runs.run import Run, RunId
from services.scheduler.runs.run_order import Priority

# Whatever the limits say: a run that has a place again looks for what is missing before it sends anything.
SHORTEST_STAY = timedelta(seconds=5)
# A planning that is broken off begins anew, so it is let alone; but who plans slowly may not keep all places.
LONGEST_PLANNING = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that waits for a place."""

    run_id: RunId
    user: str
    priority: Priority


@dataclass(frozen=True, slots=True)
class Place:
    """A run that has a place since `taken_at`. One that is being closed gives its place back by itself."""

    run_id: RunId
    user: str
    priority: Priority
    taken_at: datetime
    is_planned: bool
    is_closing: bool = False


@dataclass(frozen=True, slots=True)
class PlaceMoves:
    admitted: Sequence[RunId] = ()
    gave_way: Sequence[RunId] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """When a claim gets a place: a free one, or that of the giver, who has to go then.

    The two times are the same unless the giver is being planned: it goes when that is done, or too long.
    """

    claim: Claim
    giver: Place | None = None
    soonest_seconds: float = 0.0
    latest_seconds: float = 0.0


def claim_of(run: Run) -> Claim:
    return Claim(run.run_id, run.user, run.order.priority)


def place_of(run: Run, now: datetime) -> Place:
    taken_at = run.admitted_at or now
    return Place(run.run_id, run.user, run.order.priority, taken_at, run.is_planned, run.is_closing)


def settle_places(
    places: Sequence[Place], claims: Sequence[Claim], limits: QueueLimits, now: datetime
) -> PlaceMoves:
    """Free places go to the first claims; for those behind them places are given away, one for one."""
    admitted, gave_way = [], []
    for turn in foreseen_turns(places, claims, limits, now):
        if turn.latest_seconds > 0:
            break
        admitted.append(turn.claim.run_id)
        if turn.giver:
            gave_way.append(turn.giver.run_id)
    return PlaceMoves(admitted, gave_way)


def foreseen_turns(
    places: Sequence[Place], claims: Sequence[Claim], limits: QueueLimits, now: datetime
) -> Iterator[Turn]:
    """The turns of the first claims, as far as there is a place for them or somebody who has to go for them.

    `claims` are in the order of their turn: priority, then fair share among users, then age. Where the limit
    was lowered, places change hands as ever, and more of them are not given.
    """
    free = max(limits.max_running - len(places), 0)
    shares = Counter([place.user for place in places] + [claim.user for claim in claims[:free]])
    yield from map(Turn, claims[:free])
    staying = [place for place in places if not place.is_closing]
    for claim in claims[free:]:
        left = {place: _seconds_left(place, claim, limits, now) for place in _givers(staying, claim, shares)}
        if not left:
            return
        # Of those who can go as soon, one that is planned has the least to do again.
        giver = min(
            left, key=lambda place: (left[place][1], not place.is_planned, place.taken_at, place.run_id)
        )
        staying.remove(giver)
        shares.subtract([giver.user])
        shares.update([claim.user])
        yield Turn(claim, giver, *left[giver])


def _givers(places: Sequence[Place], claim: Claim, shares: Mapping[str, int]) -> Sequence[Place]:
    """Places of the least urgent, of the user with most of all, though another's stay may end sooner.

    For an equally urgent claim that user has to have more than the one who claims.
    """
    least = max((place.priority for place in places), default=claim.priority)
    fewest = shares[claim.user] if least == claim.priority else -1
    of_least = [place for place in places if place.priority == least >= claim.priority]
    most = max((shares[place.user] for place in of_least), default=0)
    return [place for place in of_least if shares[place.user] == most > fewest]


def _seconds_left(place: Place, claim: Claim, limits: QueueLimits, now: datetime) -> tuple[float, float]:
    """At the soonest and the latest: for what is more urgent at once, for an equal after the stay."""
    if claim.priority < place.priority:
        return 0.0, 0.0
    stay = max(limits.min_run_time, SHORTEST_STAY)
    longest = stay if place.is_planned else max(stay, LONGEST_PLANNING)
    stayed = max(now - place.taken_at, timedelta())
    return max((stay - stayed).total_seconds(), 0.0), max((longest - stayed).total_seconds(), 0.0)
