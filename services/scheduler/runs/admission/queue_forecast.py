"""When the turn of each waiting run comes, from the queue, the pace of what runs and runs that have ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest

from proctor.values.run import RunCounts, RunId
from services.scheduler.runs.admission.run_estimate import (
    NOW,
    Estimate,
    History,
    PastRun,
    order_estimate,
    outcomes_estimate,
    start_estimates,
)
from services.scheduler.runs.admission.run_queue import QueuedRuns, RunWait, blocked_by
from services.scheduler.runs.admission.run_slots import ExpectedSlot, expected_slots, slot_of, slot_request_of
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.limits.queue_limits import QueueLimits


@dataclass(frozen=True, slots=True)
class RunRate:
    """How far a run is and how fast it goes, as far as heard: one that gave way is not at its beginning."""

    counts: RunCounts | None = None
    samples_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class QueueMoment:
    """What the stores said, and when; `staffed_pools` have a live worker."""

    queue: QueuedRuns
    limits: QueueLimits
    now: datetime
    staffed_pools: frozenset[str]


class QueueForecast:
    """Of one moment: played through once, looked up for each run. Nobody who comes later is counted on."""

    def __init__(self, moment: QueueMoment, paces: Mapping[RunId, RunRate], history: History) -> None:
        self.moment = moment
        self._paces = paces
        self._history = history
        self._turns = self._forecast()
        self._running = frozenset(run.run_id for run in moment.queue.running)
        self._index = {each.run.run_id: index for index, each in enumerate(moment.queue.waiting)}

    def wait(self, run_id: RunId) -> RunWait | None:
        """None of a run that does not wait, or waits behind those that were looked at."""
        index = self._index.get(run_id)
        return None if index is None else RunWait(index + 1, self._held_by(index), self._turn(index))

    def far_wait(self, position: int) -> RunWait:
        """Of a run behind those that were looked at."""
        queue, most = self.moment.queue, self.moment.limits.max_running
        held = f"{len(queue.running)} of at most {most} runs are running; before it: {position - 1} in all"
        return RunWait(position, held)

    @property
    def is_whole(self) -> bool:
        """Whether all that waits was looked at."""
        return self.moment.queue.waiting_total <= len(self.moment.queue.waiting)

    def contains(self, run_id: RunId) -> bool:
        return run_id in self._index or run_id in self._running

    def seconds_to_end(self, run: Run) -> float | None:
        """Its wait included, where it still waits."""
        index = self._index.get(run.run_id)
        own = self._remaining(run)
        turn = NOW if run.run_id in self._running else None if index is None else self._turn(index)
        return own.seconds + turn.seconds if own and turn else None

    def _turn(self, index: int) -> Estimate | None:
        """None where nobody is there to work: a slot alone does not let a run start."""
        return self._turns[index] if self._is_staffed(index) else None

    def _is_staffed(self, index: int) -> bool:
        return self.moment.queue.waiting[index].run.pool in self.moment.staffed_pools

    def _forecast(self) -> list[Estimate | None]:
        moment = self.moment
        ends = [self._remaining(run) for run in moment.queue.running]
        lengths = [self._remaining(each.run) for each in moment.queue.waiting]
        turns = start_estimates(ends, lengths, moment.limits.max_running)
        slots = [slot_of(run, moment.now) for run in moment.queue.running]
        slot_requests = [slot_request_of(each.run) for each in moment.queue.waiting]
        given = expected_slots(slots, slot_requests, moment.limits, moment.now)
        return [_earlier(turn, by_then) for turn, by_then in zip_longest(turns, given)]

    def _held_by(self, index: int) -> str:
        why = blocked_by(self.moment.queue, index, self.moment.limits)
        pool = self.moment.queue.waiting[index].run.pool
        return why if self._is_staffed(index) else f"{why}; no worker of pool {pool} is live"

    def _remaining(self, run: Run) -> Estimate | None:
        history = self._history_of(run)
        if run.is_planned:
            pace = self._paces.get(run.run_id, RunRate())
            recorded = pace.counts.recorded if pace.counts else 0
            measured = 1 / pace.samples_per_second if pace.samples_per_second else None
            told = outcomes_estimate(max(run.total - recorded, 0), history, measured)
        else:
            told = order_estimate(run.order, history)
        if told is None or run.deadline is None:
            return told
        return told.at_most(max((run.deadline - self.moment.now).total_seconds(), 0.0))

    def _history_of(self, run: Run) -> Sequence[PastRun]:
        return self._history.get((run.order.subject, run.order.model), ())


def _earlier(by_end: Estimate | None, given: ExpectedSlot | None) -> Estimate | None:
    """By the end of a run, or by one that has to give its slot away."""
    if given is None:
        return by_end
    soonest, latest = given.soonest_seconds, given.latest_seconds
    return by_end.at_most(soonest, latest) if by_end else Estimate(soonest, 0.0, latest)
