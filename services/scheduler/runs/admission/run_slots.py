"""Slots of running runs: which pending run gets one, and which running run is preempted for it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from proctor.values.priority import Priority
from proctor.values.run import RunId
from services.scheduler.limits.queue_limits import QueueLimits
from services.scheduler.runs.lifecycle.run import Run

# A lower bound for any limit: a run that is admitted again reconciles before it sends anything.
MIN_RUN_TIME = timedelta(seconds=5)
# A preempted planning starts over, so runs are not preempted while they are planned, up to this time.
MAX_PLANNING = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """A run that waits for a slot."""

    run_id: RunId
    user: str
    priority: Priority


@dataclass(frozen=True, slots=True)
class RunSlot:
    """A running run with its slot since `admitted_at`. One whose figures are being computed has none."""

    run_id: RunId
    user: str
    priority: Priority
    admitted_at: datetime
    is_planned: bool


@dataclass(frozen=True, slots=True)
class SlotChanges:
    """`waits` are those of the admitted runs, in seconds, by priority."""

    admitted: Sequence[RunId] = ()
    preempted: Sequence[RunId] = ()
    waits: Sequence[tuple[Priority, float]] = ()


@dataclass(frozen=True, slots=True)
class ExpectedSlot:
    """When a request gets a slot: a free one, or that of the `preempted` run.

    The two times differ only if that run is being planned: it is preempted when it is planned, or too late.
    """

    request: SlotRequest
    preempted: RunSlot | None = None
    soonest_seconds: float = 0.0
    latest_seconds: float = 0.0


def slot_request_of(run: Run) -> SlotRequest:
    return SlotRequest(run.run_id, run.user, run.order.priority)


def slot_of(run: Run, now: datetime) -> RunSlot:
    admitted_at = run.admitted_at or now
    return RunSlot(run.run_id, run.user, run.order.priority, admitted_at, run.is_planned)


def assign_slots(
    slots: Sequence[RunSlot], slot_requests: Sequence[SlotRequest], limits: QueueLimits, now: datetime
) -> SlotChanges:
    """Free slots go to the first requests. Each one behind them preempts at most one run."""
    admitted, preempted = [], []
    for expected in expected_slots(slots, slot_requests, limits, now):
        if expected.latest_seconds > 0:
            break
        admitted.append(expected.request.run_id)
        if expected.preempted:
            preempted.append(expected.preempted.run_id)
    return SlotChanges(admitted, preempted)


def expected_slots(
    slots: Sequence[RunSlot], slot_requests: Sequence[SlotRequest], limits: QueueLimits, now: datetime
) -> Iterator[ExpectedSlot]:
    """Returns when the first requests get a slot, as far as one is free or another run can be preempted.

    `slot_requests` are in starting order: priority, then fair share among users, then age. If the limit was
    lowered, slots still change hands, but the number of running runs does not grow.
    """
    free = max(limits.max_running_runs - len(slots), 0)
    shares = Counter([slot.user for slot in slots] + [request.user for request in slot_requests[:free]])
    yield from map(ExpectedSlot, slot_requests[:free])
    preemptible_slots = list(slots)
    for request in slot_requests[free:]:
        left = {
            slot: _seconds_left(slot, request, limits, now)
            for slot in _preemptible(preemptible_slots, request, shares)
        }
        if not left:
            return
        # The slot whose latest end comes first: it includes the whole planning time of a run that is being
        # planned. Among equals a planned run has the least work to repeat.
        preempted = min(
            left, key=lambda slot: (left[slot][1], not slot.is_planned, slot.admitted_at, slot.run_id)
        )
        # The counts follow each assignment, so that one user is not preempted for all requests.
        preemptible_slots.remove(preempted)
        shares.subtract([preempted.user])
        shares.update([request.user])
        yield ExpectedSlot(request, preempted, *left[preempted])


def _preemptible(
    slots: Sequence[RunSlot], request: SlotRequest, shares: Mapping[str, int]
) -> Sequence[RunSlot]:
    """Slots of the lowest priority, of the user who has most of them, even if another could end sooner.

    For a request of equal priority that user must have more slots than the requesting one.
    """
    # HIGH is the smallest.
    lowest = max((slot.priority for slot in slots), default=request.priority)
    if lowest.is_above(request.priority):
        return ()
    # Below every share: a higher priority preempts whatever its user has already.
    fewest = -1 if request.priority.is_above(lowest) else shares[request.user]
    of_lowest = [slot for slot in slots if slot.priority is lowest]
    most = max((shares[slot.user] for slot in of_lowest), default=0)
    return [slot for slot in of_lowest if shares[slot.user] == most > fewest]


def _seconds_left(
    slot: RunSlot, request: SlotRequest, limits: QueueLimits, now: datetime
) -> tuple[float, float]:
    """Soonest and latest: at once for a higher priority, after the minimum run time for an equal one."""
    if request.priority.is_above(slot.priority):
        return 0.0, 0.0
    shortest = max(limits.min_run_time, MIN_RUN_TIME)
    longest = shortest if slot.is_planned else max(shortest, MAX_PLANNING)
    ran = max(now - slot.admitted_at, timedelta())
    return max((shortest - ran).total_seconds(), 0.0), max((longest - ran).total_seconds(), 0.0)
