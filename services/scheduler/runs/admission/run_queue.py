"""The queue at one moment: running and pending runs in order, and the limit that blocks a pending run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from proctor.values.priority import Priority
from proctor.values.run import RunState
from services.scheduler.limits.queue_limits import QueueLimits
from services.scheduler.runs.admission.run_estimate import TimeEstimate
from services.scheduler.runs.lifecycle.run import Run


@dataclass(frozen=True, slots=True)
class PendingRun:
    """`queued_at`: when it last began to wait."""

    run: Run
    queued_at: datetime


@dataclass(frozen=True, slots=True)
class UserRunCounts:
    user: str
    running: int
    pending: int


@dataclass(frozen=True, slots=True)
class QueuedRuns:
    """`running` in the order of their start, `pending` in that of their expected start, as far as listed.

    `paused`, the latest first, as far as listed as well.
    """

    running: Sequence[Run] = ()
    pending: Sequence[PendingRun] = ()
    pending_total: int = 0
    users: Sequence[UserRunCounts] = ()
    paused: Sequence[Run] = ()

    def free_slots(self, limits: QueueLimits) -> int:
        return max(limits.max_running_runs - len(self.running), 0)

    def with_ordered(self, run: Run) -> "QueuedRuns":
        """The queue with a run that is ordered now: the last one of those that are as urgent.

        Where it would come behind the runs that are listed, the queue is the same.
        """
        index = sum(not run.order.priority.is_above(each.run.order.priority) for each in self.pending)
        if index == len(self.pending) < self.pending_total:
            return self
        pending = [*self.pending[:index], PendingRun(run, run.created_at), *self.pending[index:]]
        return replace(self, pending=pending, pending_total=self.pending_total + 1)

    def running_of(self, user: str) -> int:
        return sum(run.user == user for run in self.running)


def blocked_by(queue: QueuedRuns, index: int, limits: QueueLimits) -> str:
    """Why the run that waits at this index does not run: one sentence."""
    if index < queue.free_slots(limits):
        return "A slot is free: it starts in a moment"
    held = busy_slots(len(queue.running), limits.max_running_runs)
    if not index:
        return held
    which = _which_are_ahead(queue, index)
    return f"{held}; {runs_ahead(index)}{f': {which}' if which else ''}"


def busy_slots(running: int, limit: int) -> str:
    """Why no further run can start. More may be running than a limit that was lowered."""
    if running > limit:
        return f"{running} runs are running, and the limit is {limit} now"
    return f"All {limit} slots are busy" if limit > 1 else "The only slot is busy"


def runs_ahead(count: int) -> str:
    return f"{count} {'run' if count == 1 else 'runs'} ahead of it"


def _which_are_ahead(queue: QueuedRuns, index: int) -> str:
    """Those that go first for another reason than that they were ordered earlier."""
    this = queue.pending[index]
    before = queue.pending[:index]
    equals = [each for each in before if each.run.order.priority == this.run.order.priority]
    # Queued later and still in front: only fair share explains that.
    later = [each for each in equals if each.queued_at > this.queued_at and each.run.user != this.run.user]
    counted = {
        "more urgent": index - len(equals),
        f"of other users by fair share{_own_share(queue, index)}": len(later),
    }
    return ", ".join(f"{count} {which}" for which, count in counted.items() if count)


def _own_share(queue: QueuedRuns, index: int) -> str:
    """The runs that its user has already, which is why others go first."""
    user = queue.pending[index].run.user
    waiting = sum(each.run.user == user for each in queue.pending[:index])
    counted = {"running": queue.running_of(user), "waiting before it": waiting}
    has = [f"{count} {where}" for where, count in counted.items() if count]
    return f" ({user} has {' and '.join(has)})" if has else ""


@dataclass(frozen=True, slots=True)
class RunWait:
    """Position in the queue (1 is next), the limit that blocks the run, time until its start if known."""

    position: int
    blocked_by: str
    estimate: TimeEstimate | None = None


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Runs of one state and priority; `oldest` is when the first of them was queued."""

    state: RunState
    priority: Priority
    runs: int
    oldest: datetime
