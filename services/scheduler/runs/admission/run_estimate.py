"""How long a run takes and when its turn comes, told from ended runs of the same model and suite."""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.scheduler.progress.run_speed import LONE_FACTOR
from services.scheduler.runs.orders.run_order import RunOrder


@dataclass(frozen=True, slots=True)
class PastRun:
    """A completed run: what was ordered, how many outcomes it had and how long it took."""

    tasks: tuple[str, ...]
    limit: int | None
    rollouts: int
    total: int
    seconds: float

    @property
    def pace(self) -> float:
        """Seconds per outcome."""
        return self.seconds / self.total


# By suite and model, the latest first.
History = Mapping[tuple[str, str], Sequence[PastRun]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds, and the same if all goes as fast and as slowly as it ever did."""

    seconds: float
    low: float
    high: float

    def __add__(self, other: "Estimate") -> "Estimate":
        return Estimate(self.seconds + other.seconds, self.low + other.low, self.high + other.high)

    def at_most(self, seconds: float, high: float | None = None) -> "Estimate":
        """Where something else ends it in so many seconds, or `high` if that is slow."""
        most = seconds if high is None else high
        return Estimate(min(self.seconds, seconds), min(self.low, seconds), min(self.high, most))


NOW = Estimate(0.0, 0.0, 0.0)
# Of a run that nothing is told of: it may end now, or never.
_UNKNOWN = Estimate(math.inf, 0.0, math.inf)


def order_estimate(order: RunOrder, history: Sequence[PastRun]) -> Estimate | None:
    """Of the whole run, from its start."""
    outcomes = expected_outcomes(order, history)
    return None if outcomes is None else outcomes_estimate(outcomes, history)


def outcomes_estimate(
    outcomes: float, history: Sequence[PastRun], measured_pace: float | None = None
) -> Estimate | None:
    """Of so many outcomes; the pace that is measured now counts for more than that of earlier runs."""
    told = [past for past in history if past.total]
    paces = [past.pace for past in told]
    if measured_pace is not None:
        paces.append(measured_pace)
    if not paces:
        return None
    past_pace = sum(past.seconds for past in told) / sum(past.total for past in told) if told else 0.0
    pace = past_pace if measured_pace is None else measured_pace
    if len(paces) == 1:
        return Estimate(outcomes * pace, outcomes * pace / LONE_FACTOR, outcomes * pace * LONE_FACTOR)
    return Estimate(outcomes * pace, outcomes * min(paces), outcomes * max(paces))


def start_estimates(
    running: Sequence[Estimate | None], waiting: Sequence[Estimate | None], slots: int
) -> list[Estimate | None]:
    """When a slot gets free for each waiting run, where they take the slots in this order.

    A run that nothing is told of is taken never to give its slot back, and at best to do so at once: while
    other slots are told of, the turn comes at the latest then. None where no slot is.
    """
    taken, coming = ([each or _UNKNOWN for each in runs] for runs in (running, waiting))
    turns = zip(
        _starts([each.seconds for each in taken], [each.seconds for each in coming], slots),
        _starts([each.low for each in taken], [each.low for each in coming], slots),
        _starts([each.high for each in taken], [each.high for each in coming], slots),
        strict=True,
    )
    return [None if math.isinf(turn[0]) else Estimate(*turn) for turn in turns]


def _starts(running: Sequence[float], waiting: Sequence[float], slots: int) -> list[float]:
    # Where a limit was lowered more runs go than there are slots: the first to end free none.
    ends = sorted([*running, *[0.0] * (slots - len(running))])
    free_at = ends[len(ends) - slots :]
    return [heapq.heapreplace(free_at, free_at[0] + seconds) for seconds in waiting]


def expected_outcomes(order: RunOrder, history: Sequence[PastRun]) -> float | None:
    """None where neither the order nor a run like it tells."""
    same = [past for past in history if set(past.tasks) == set(order.tasks) and past.limit == order.limit]
    if same:
        return same[0].total / same[0].rollouts * order.rollouts
    if order.limit is not None and order.tasks:
        return order.limit * len(order.tasks) * order.rollouts
    return None
