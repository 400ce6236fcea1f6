"""The slots of the runs that are running: who gets one, and who gives one away so that nobody is starved."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from proctor.values.priority import Priority
from proctor.values.run import RunId
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.limits.queue_limits import QueueLimits

# Whatever the limits say: a run that has a slot again looks for what is missing before it sends anything.
SHORTEST_RUN_TIME = timedelta(seconds=5)
# A planning that is broken off begins anew, so it is let alone; but who plans slowly may not keep all slots.
LONGEST_PLANNING = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """A run that waits for a slot."""

    run_id: RunId
    user: str
    priority: Priority


@dataclass(frozen=True, slots=True)
class RunSlot:
    """A run that has a slot since `admitted_at`. One that is being closed gives its slot back by itself."""

    run_id: RunId
    user: str
    priority: Priority
    admitted_at: datetime
    is_planned: bool
    is_closing: bool = False


@dataclass(frozen=True, slots=True)
class SlotChanges:
    admitted: Sequence[RunId] = ()
    preempted: Sequence[RunId] = ()


@dataclass(frozen=True, slots=True)
class ExpectedSlot:
    """When a request gets a slot: a free one, or that of the preempted, who has to go then.

    The two times are the same unless the preempted is being planned: it goes when that is done, or too long.
    """

    request: SlotRequest
    preempted: RunSlot | None = None
    soonest_seconds: float = 0.0
    latest_seconds: float = 0.0


def slot_request_of(run: Run) -> SlotRequest:
    return SlotRequest(run.run_id, run.user, run.order.priority)


def slot_of(run: Run, now: datetime) -> RunSlot:
    admitted_at = run.admitted_at or now
    return RunSlot(run.run_id, run.user, run.order.priority, admitted_at, run.is_planned, run.is_closing)


def assign_slots(
    slots: Sequence[RunSlot], slot_requests: Sequence[SlotRequest], limits: QueueLimits, now: datetime
) -> SlotChanges:
    """Free slots go to the first slot_requests; for those behind them slots are given away, one for one."""
    admitted, preempted = [], []
    for turn in expected_slots(slots, slot_requests, limits, now):
        if turn.latest_seconds > 0:
            break
        admitted.append(turn.request.run_id)
        if turn.preempted:
            preempted.append(turn.preempted.run_id)
    return SlotChanges(admitted, preempted)


def expected_slots(
    slots: Sequence[RunSlot], slot_requests: Sequence[SlotRequest], limits: QueueLimits, now: datetime
) -> Iterator[ExpectedSlot]:
    """Returns when the first requests get a slot, as far as one is free or another run can be preempted.

    `slot_requests` are in starting order: priority, then fair share among users, then age. If the limit was
    lowered, slots still change hands, but the number of running runs does not grow.
    """
    free = max(limits.max_running - len(slots), 0)
    shares = Counter([slot.user for slot in slots] + [request.user for request in slot_requests[:free]])
    yield from map(ExpectedSlot, slot_requests[:free])
    staying = [slot for slot in slots if not slot.is_closing]
    for request in slot_requests[free:]:
        left = {
            slot: _seconds_left(slot, request, limits, now) for slot in _preemptible(staying, request, shares)
        }
        if not left:
            return
        # Of those who can go as soon, one that is planned has the least to do again.
        preempted = min(
            left, key=lambda slot: (left[slot][1], not slot.is_planned, slot.admitted_at, slot.run_id)
        )
        staying.remove(preempted)
        shares.subtract([preempted.user])
        shares.update([request.user])
        yield ExpectedSlot(request, preempted, *left[preempted])


def _preemptible(
    slots: Sequence[RunSlot], request: SlotRequest, shares: Mapping[str, int]
) -> Sequence[RunSlot]:
    """Places of the least urgent, of the user with most of all, though another's stay may end sooner.

    For an equally urgent request that user has to have more than the one who slot_requests.
    """
    least = max((slot.priority for slot in slots), default=request.priority)
    fewest = shares[request.user] if least == request.priority else -1
    of_least = [slot for slot in slots if slot.priority == least >= request.priority]
    most = max((shares[slot.user] for slot in of_least), default=0)
    return [slot for slot in of_least if shares[slot.user] == most > fewest]


def _seconds_left(
    slot: RunSlot, request: SlotRequest, limits: QueueLimits, now: datetime
) -> tuple[float, float]:
    """At the soonest and the latest: for what is more urgent at once, for an equal after the stay."""
    if request.priority < slot.priority:
        return 0.0, 0.0
    stay = max(limits.min_run_time, SHORTEST_RUN_TIME)
    longest = stay if slot.is_planned else max(stay, LONGEST_PLANNING)
    stayed = max(now - slot.admitted_at, timedelta())
    return max((stay - stayed).total_seconds(), 0.0), max((longest - stayed).total_seconds(), 0.0)
