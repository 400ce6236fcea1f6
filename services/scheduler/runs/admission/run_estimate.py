"""How long a run takes and when it starts, estimated from completed runs of the same model and benchmark."""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.scheduler.progress.run_speed import LONE_FACTOR
from services.scheduler.runs.admission.planned_rows import PlannedRows, expected_samples
from services.scheduler.runs.orders.run_order import RunOrder


@dataclass(frozen=True, slots=True)
class CompletedRun:
    """A completed run: what was ordered, how many outcomes it had and how long it took."""

    tasks: tuple[str, ...]
    limit: int | None
    rollouts: int
    total: int
    seconds: float

    @property
    def seconds_per_outcome(self) -> float:
        """Seconds per outcome."""
        return self.seconds / self.total


# By benchmark and model, the latest first.
PastRuns = Mapping[tuple[str, str], Sequence[CompletedRun]]


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """Seconds; `low` at the highest speed observed, `high` at the lowest."""

    seconds: float
    low: float
    high: float

    def __add__(self, other: "TimeEstimate") -> "TimeEstimate":
        return TimeEstimate(self.seconds + other.seconds, self.low + other.low, self.high + other.high)

    def at_most(self, seconds: float, high: float | None = None) -> "TimeEstimate":
        """This estimate, where something else ends the run in so many seconds, or `high` if that is slow."""
        most = seconds if high is None else high
        return TimeEstimate(min(self.seconds, seconds), min(self.low, seconds), min(self.high, most))


NOW = TimeEstimate(0.0, 0.0, 0.0)
# A run without history may end now, or never.
_UNKNOWN = TimeEstimate(math.inf, 0.0, math.inf)


def order_estimate(
    order: RunOrder, history: Sequence[CompletedRun], planned: Sequence[PlannedRows] = ()
) -> TimeEstimate | None:
    """The duration of the whole run."""
    outcomes = expected_outcomes(order, history, planned)
    return None if outcomes is None else outcomes_estimate(outcomes, history)


def outcomes_estimate(
    outcomes: float, history: Sequence[CompletedRun], seconds_per_outcome: float | None = None
) -> TimeEstimate | None:
    """The duration of so many outcomes; a speed that is measured now counts more than earlier runs."""
    known = [past for past in history if past.total]
    speeds = [past.seconds_per_outcome for past in known]
    if seconds_per_outcome is not None:
        # The measured speed decides the estimate; past runs only widen its bounds.
        speeds.append(seconds_per_outcome)
    if not speeds:
        return None
    past_seconds = sum(past.seconds for past in known) / sum(past.total for past in known) if known else 0.0
    seconds_each = past_seconds if seconds_per_outcome is None else seconds_per_outcome
    # One speed has no spread of its own, so a fixed factor bounds it.
    if len(speeds) == 1:
        return TimeEstimate(
            outcomes * seconds_each,
            outcomes * seconds_each / LONE_FACTOR,
            outcomes * seconds_each * LONE_FACTOR,
        )
    return TimeEstimate(outcomes * seconds_each, outcomes * min(speeds), outcomes * max(speeds))


def start_estimates(
    running: Sequence[TimeEstimate | None], pending: Sequence[TimeEstimate | None], slots: int
) -> list[TimeEstimate | None]:
    """When a slot gets free for each pending run, where they take the slots in this order.

    A run without an estimate may keep its slot for ever or free it at once. None if no slot has an estimate.
    """
    taken, coming = ([each or _UNKNOWN for each in runs] for runs in (running, pending))
    starts = zip(
        _starts([each.seconds for each in taken], [each.seconds for each in coming], slots),
        _starts([each.low for each in taken], [each.low for each in coming], slots),
        _starts([each.high for each in taken], [each.high for each in coming], slots),
        strict=True,
    )
    return [None if math.isinf(start[0]) else TimeEstimate(*start) for start in starts]


def _starts(running: Sequence[float], pending: Sequence[float], slots: int) -> list[float]:
    # Where a limit was lowered more runs go than there are slots: the first to end free none.
    ends = sorted([*running, *[0.0] * (slots - len(running))])
    # Sorted ascending, so the slice is a heap already.
    free_at = ends[len(ends) - slots :]
    return [heapq.heapreplace(free_at, free_at[0] + seconds) for seconds in pending]


def expected_outcomes(
    order: RunOrder, history: Sequence[CompletedRun], planned: Sequence[PlannedRows] = ()
) -> float | None:
    """None if neither the order nor a run on the same benchmark says how many."""
    if order.row_rollouts:
        return sum(order.row_rollouts)
    same = [past for past in history if set(past.tasks) == set(order.tasks) and past.limit == order.limit]
    # Rows may be fewer than the limit asks for, so what a like run had counts more than the order.
    if same:
        return same[0].total / same[0].rollouts * order.rollouts
    samples = expected_samples(order, planned)
    return None if samples is None else samples * order.rollouts
