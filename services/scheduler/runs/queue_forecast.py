"""When the turn of each waiting run comes, from the queue, the pace of what runs and runs that have ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from services.scheduler.runs.queue_limits import QueueLimits
from services.scheduler.runs.run import Run, RunId
from services.scheduler.runs.run_counts import RunCounts
from services.scheduler.runs.run_estimate import (
    Estimate,
    History,
    PastRun,
    order_estimate,
    outcomes_estimate,
    turn_estimates,
)
from services.scheduler.runs.run_queue import QueuedRuns, held_by, seconds_until_places_are_given
from services.scheduler.runs.run_snapshot import RunWait


@dataclass(frozen=True, slots=True)
class RunningRun:
    """A run that runs, with its progress as far as it is known."""

    run: Run
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
    """Of one moment: played through once, looked up for each run."""

    def __init__(self, moment: QueueMoment, running: Sequence[RunningRun], history: History) -> None:
        self.moment = moment
        self._history = history
        self._waits = dict(self._forecast(running))

    def wait(self, run_id: RunId) -> RunWait | None:
        """None of a run that does not wait, or waits behind those that were looked at."""
        return self._waits.get(run_id)

    def far_wait(self, position: int) -> RunWait:
        """Of a run behind those that were looked at."""
        queue, most = self.moment.queue, self.moment.limits.max_running
        held = f"{len(queue.running)} of at most {most} runs are running; before it: {position - 1} in all"
        return RunWait(position, held)

    @property
    def is_whole(self) -> bool:
        """Whether all that waits was looked at."""
        return self.moment.queue.waiting_total <= len(self.moment.queue.waiting)

    def knows(self, run_id: RunId) -> bool:
        return run_id in self._waits

    def seconds_to_end(self, run: Run) -> float | None:
        wait = self.wait(run.run_id)
        own = self._whole(run)
        if wait is None or wait.estimate is None or own is None:
            return None
        return wait.estimate.seconds + own.seconds

    def _forecast(self, running: Sequence[RunningRun]) -> list[tuple[RunId, RunWait]]:
        moment = self.moment
        waiting = moment.queue.waiting
        ends = [self._remaining(each) for each in running]
        lengths = [self._whole(each.run) for each in waiting]
        turns = turn_estimates(ends, lengths, moment.limits.max_running)
        given = seconds_until_places_are_given(moment.queue, moment.limits, moment.now)
        waits = []
        for index, (each, turn) in enumerate(zip(waiting, turns, strict=True)):
            at_most = given[index] if index < len(given) else None
            waits.append((each.run.run_id, RunWait(index + 1, self._held_by(index), _sooner(turn, at_most))))
        return waits

    def _held_by(self, index: int) -> str:
        why = held_by(self.moment.queue, index, self.moment.limits)
        pool = self.moment.queue.waiting[index].run.pool
        return why if pool in self.moment.staffed_pools else f"{why}; no worker of pool {pool} is live"

    def _remaining(self, running: RunningRun) -> Estimate | None:
        run, rate, recorded = running.run, running.samples_per_second, 0
        if running.counts is not None:
            recorded = running.counts.recorded
        told = self._whole(run)
        if run.is_planned:
            pace = 1 / rate if rate else None
            told = outcomes_estimate(max(run.total - recorded, 0), self._history_of(run), pace)
        if told is None or run.deadline is None:
            return told
        return told.at_most(max((run.deadline - self.moment.now).total_seconds(), 0.0))

    def _whole(self, run: Run) -> Estimate | None:
        return order_estimate(run.order, self._history_of(run))

    def _history_of(self, run: Run) -> Sequence[PastRun]:
        return self._history.get((run.order.suite, run.order.model), ())


def _sooner(turn: Estimate | None, seconds: float | None) -> Estimate | None:
    """By the end of a run, or by one that has to give its place away."""
    if seconds is None:
        return turn
    return turn.at_most(seconds) if turn else Estimate(seconds, 0.0, seconds)
