"""The places of the runs that are running: who gets one, and who gives one away so that nobody is starved."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from services.scheduler.runs.queue_limits import QueueLimits
from services.scheduler.runs.run import RunId
from services.scheduler.runs.run_order import Priority


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that waits for a place."""

    run_id: RunId
    user: str
    priority: Priority


@dataclass(frozen=True, slots=True)
class Place:
    """A run that has a place since `taken_at`. What is not planned yet would be planned anew."""

    run_id: RunId
    user: str
    priority: Priority
    taken_at: datetime
    is_planned: bool


@dataclass(frozen=True, slots=True)
class PlaceMoves:
    admitted: Sequence[RunId] = ()
    gave_way: Sequence[RunId] = ()


def settle_places(
    places: Sequence[Place], claims: Sequence[Claim], limits: QueueLimits, now: datetime
) -> PlaceMoves:
    """Free places go to the first claims; for those behind them places are given away, one for one.

    `claims` are in the order of their turn: priority, then fair share among users, then age.
    """
    free = limits.max_running - len(places)
    if free < 0:
        return PlaceMoves()  # the limit was lowered: what runs keeps its place until it ends
    admitted = [claim.run_id for claim in claims[:free]]
    shares = Counter([place.user for place in places] + [claim.user for claim in claims[:free]])
    staying = {place.run_id: place for place in places}
    gave_way = []
    for claim in claims[free:]:
        giver = _giver(list(staying.values()), claim, _Rules(shares, limits.min_stay, now))
        if giver is None:
            break
        del staying[giver.run_id]
        shares.subtract([giver.user])
        shares.update([claim.user])
        gave_way.append(giver.run_id)
        admitted.append(claim.run_id)
    return PlaceMoves(admitted, gave_way)


@dataclass(frozen=True, slots=True)
class _Rules:
    """`shares` counts the places of each user."""

    shares: Mapping[str, int]
    min_stay: timedelta
    now: datetime

    def has_to_go(self, place: Place, claim: Claim) -> bool:
        """To what is more urgent at once; to another user's, who has fewer places, after its stay."""
        if place.priority != claim.priority:
            return place.priority > claim.priority
        has_stayed = self.now - place.taken_at >= self.min_stay
        # A planning that has to begin again and again would never end.
        return has_stayed and place.is_planned and self.shares[place.user] > self.shares[claim.user]


def _giver(places: Sequence[Place], claim: Claim, rules: _Rules) -> Place | None:
    """The least urgent, of the user with most places, that stayed longest."""
    return max(
        (place for place in places if rules.has_to_go(place, claim)),
        key=lambda place: (
            place.priority,
            rules.shares[place.user],
            rules.now - place.taken_at,
            place.run_id,
        ),
        default=None,
    )
