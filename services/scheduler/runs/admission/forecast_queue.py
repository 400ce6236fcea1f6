"""When each pending run starts: from the queue, the speed of running runs, and completed runs."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Protocol

from proctor.values.run import RunCounts, RunId
from services.common.clock import Clock
from services.scheduler.disks.disk_use import AwaitedDisk, DiskStage
from services.scheduler.limits.ports import LimitStore
from services.scheduler.limits.queue_limits import QueueLimits
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.runs.admission.planned_rows import PlannedRows
from services.scheduler.runs.admission.run_estimate import (
    NOW,
    CompletedRun,
    PastRuns,
    TimeEstimate,
    expected_outcomes,
    order_estimate,
    outcomes_estimate,
    start_estimates,
)
from services.scheduler.runs.admission.run_queue import (
    QueuedRuns,
    RunWait,
    blocked_by,
    busy_slots,
    runs_ahead,
)
from services.scheduler.runs.admission.run_slots import ExpectedSlot, expected_slots, slot_of, slot_request_of
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.workers.ports import WorkerRegistry

# Pending runs that are forecast. Those behind them have a position but no time.
MAX_FORECAST = 500
# Calls within this time share a forecast, so that the cost does not grow with the number of calls.
MAX_AGE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """How far a run is and how fast, by its reports; a preempted run keeps its counts."""

    counts: RunCounts | None = None
    samples_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class QueueMoment:
    """Readings of the stores at one moment; `pools_with_workers` have a live worker.

    `held`: why no pending run starts at all; empty if they start as slots become free.
    """

    queue: QueuedRuns
    limits: QueueLimits
    now: datetime
    pools_with_workers: frozenset[str]
    held: str = ""


@dataclass(frozen=True, slots=True)
class PastOfBenchmarks:
    """Completed runs by benchmark and model, and by benchmark the rows of its tasks; the latest first."""

    runs: PastRuns
    rows: Mapping[str, Sequence[PlannedRows]]


class QueueForecast:
    """A forecast at one moment, computed once for all runs. Later runs are not foreseen."""

    def __init__(
        self, moment: QueueMoment, measured: Mapping[RunId, MeasuredRun], past: PastOfBenchmarks
    ) -> None:
        self.moment = moment
        self._measured = measured
        self._past = past
        self._starts = self._forecast()
        self._running = frozenset(run.run_id for run in moment.queue.running)
        self._index = {each.run.run_id: index for index, each in enumerate(moment.queue.pending)}

    def wait(self, run_id: RunId) -> RunWait | None:
        """None if the run is not pending, or is behind those that were forecast."""
        index = self._index.get(run_id)
        return None if index is None else RunWait(index + 1, self._blocked_by(index), self._start(index))

    def far_wait(self, position: int) -> RunWait:
        """The wait of a run behind those that were forecast."""
        queue, limit = self.moment.queue, self.moment.limits.max_running_runs
        busy = busy_slots(len(queue.running), limit)
        blocked = self.moment.held or f"{busy}; {runs_ahead(position - 1)}"
        return RunWait(position, blocked)

    @property
    def is_whole(self) -> bool:
        """Whether all pending runs were forecast."""
        return self.moment.queue.pending_total <= len(self.moment.queue.pending)

    def contains(self, run_id: RunId) -> bool:
        return run_id in self._index or run_id in self._running

    @property
    def running(self) -> Sequence[Run]:
        """Runs with a slot."""
        return [run for run in self.moment.queue.running if not run.is_closing]

    def runs_with_slots_within(self, seconds: float) -> Iterator[Run]:
        """Runs that have a slot, or are expected to get one by then."""
        yield from self.running
        for each, start in zip(self.moment.queue.pending, self._starts, strict=True):
            if start is not None and start.seconds <= seconds:
                yield each.run

    def outcomes_left(self, run: Run) -> float | None:
        """Outcomes that are not recorded; None where nothing says how many there will be."""
        if run.is_planned:
            counts = self._measured.get(run.run_id, MeasuredRun()).counts
            return max(run.total - (counts.recorded if counts else 0), 0)
        return expected_outcomes(run.order, self._history_of(run), self.rows_of(run))

    def rows_of(self, run: Run) -> Sequence[PlannedRows]:
        """The rows of the tasks of its benchmark, as earlier runs had them."""
        return self._past.rows.get(run.order.benchmark, ())

    def time_to_end(self, run: Run) -> TimeEstimate | None:
        """The time from now to its end, its wait included."""
        index = self._index.get(run.run_id)
        own = self._remaining(run)
        start = NOW if run.run_id in self._running else None if index is None else self._start(index)
        return own + start if own and start else None

    def _start(self, index: int) -> TimeEstimate | None:
        """None if all runs are held, or the pool has no worker: a slot alone does not start a run."""
        return None if self.moment.held or not self._has_worker(index) else self._starts[index]

    def _has_worker(self, index: int) -> bool:
        return self.moment.queue.pending[index].run.pool in self.moment.pools_with_workers

    def _forecast(self) -> list[TimeEstimate | None]:
        moment = self.moment
        with_slots = self.running
        ends = [self._remaining(run) for run in with_slots]
        lengths = [self._remaining(each.run) for each in moment.queue.pending]
        starts = start_estimates(ends, lengths, moment.limits.max_running_runs)
        slots = [slot_of(run, moment.now) for run in with_slots]
        slot_requests = [slot_request_of(each.run) for each in moment.queue.pending]
        given = expected_slots(slots, slot_requests, moment.limits, moment.now)
        return [_earlier(start, by_then) for start, by_then in zip_longest(starts, given)]

    def _blocked_by(self, index: int) -> str:
        if self.moment.held:
            return self.moment.held
        why = blocked_by(self.moment.queue, index, self.moment.limits)
        pool = self.moment.queue.pending[index].run.pool
        return why if self._has_worker(index) else f"{why}; no worker of pool {pool} is live"

    def _remaining(self, run: Run) -> TimeEstimate | None:
        history = self._history_of(run)
        if run.is_planned:
            measured = self._measured.get(run.run_id, MeasuredRun())
            recorded = measured.counts.recorded if measured.counts else 0
            seconds_each = 1 / measured.samples_per_second if measured.samples_per_second else None
            estimate = outcomes_estimate(max(run.total - recorded, 0), history, seconds_each)
        else:
            estimate = order_estimate(run.order, history, self.rows_of(run))
        if estimate is None or run.deadline is None:
            return estimate
        return estimate.at_most(max((run.deadline - self.moment.now).total_seconds(), 0.0))

    def _history_of(self, run: Run) -> Sequence[CompletedRun]:
        return self._past.runs.get((run.order.benchmark, run.order.model), ())


def _earlier(by_end: TimeEstimate | None, given: ExpectedSlot | None) -> TimeEstimate | None:
    """When a slot becomes free: a run ends, or one is preempted."""
    if given is None:
        return by_end
    soonest, latest = given.soonest_seconds, given.latest_seconds
    return by_end.at_most(soonest, latest) if by_end else TimeEstimate(soonest, 0.0, latest)


class QueueStore(Protocol):
    """Reads the queue, of all projects: runs wait behind each other, and callers share a forecast."""

    async def queue(self, limit: int) -> QueuedRuns:
        """The queue at one moment, with at most so many waiting and as many paused runs."""
        ...

    async def positions(self, runs: Sequence[RunId]) -> Mapping[RunId, int]:
        """Positions of pending runs; the next run to start has 1."""
        ...

    async def past_runs(self, wanted: Collection[tuple[str, str]]) -> PastRuns:
        """The last completed runs of each benchmark and model."""
        ...

    async def planned_rows(self, benchmarks: Collection[str]) -> Mapping[str, Sequence[PlannedRows]]:
        """The rows of each benchmark's last completed runs, the latest first; of a data set all of them."""
        ...


@dataclass
class ForecastQueue:
    store: QueueStore
    limits: LimitStore
    tracker: ProgressTracker
    registry: WorkerRegistry
    clock: Clock
    awaited_disk: AwaitedDisk
    max_age_seconds: float = MAX_AGE_SECONDS

    def __post_init__(self) -> None:
        self._latest: QueueForecast | None = None
        self._made_at = 0.0
        self._making = asyncio.Lock()

    async def forecast(self, runs: Sequence[Run] = ()) -> QueueForecast:
        """The latest forecast, or a new one if that is too old, or older than one of these runs."""
        asked_at = self.clock.monotonic()
        # One call makes the forecast; those that wait for the lock find it fresh.
        async with self._making:
            latest = self._latest
            is_fresh = asked_at - self._made_at < self.max_age_seconds
            is_older = (
                latest is not None
                and latest.is_whole
                and not all(latest.contains(run.run_id) for run in runs)
            )
            if latest is None or not is_fresh or is_older:
                latest = await self._make()
                # The time of asking, not of the end: the readings are at least as young as this.
                self._latest, self._made_at = latest, asked_at
            return latest

    async def waits(self, runs: Sequence[Run]) -> Mapping[RunId, RunWait]:
        """Waits of pending runs; runs that were admitted meanwhile are left out."""
        if not runs:
            return {}
        forecast = await self.forecast(runs)
        waits = {run.run_id: forecast.wait(run.run_id) for run in runs}
        far = [run_id for run_id, wait in waits.items() if wait is None and not forecast.contains(run_id)]
        # Neither forecast nor far: the run was admitted since, and has no wait.
        if far and not forecast.is_whole:
            positions = await self.store.positions(far)
            waits.update({run_id: forecast.far_wait(position) for run_id, position in positions.items()})
        return {run_id: wait for run_id, wait in waits.items() if wait}

    async def if_ordered(self, run: Run) -> QueueForecast:
        """The forecast as if a run that is not stored were submitted now."""
        return await self._make(run)

    async def _make(self, ordered: Run | None = None) -> QueueForecast:
        limits = await self.limits.limits()
        queue = await self.store.queue(MAX_FORECAST)
        if ordered:
            queue = queue.with_ordered(ordered)
        known = [*queue.running, *(each.run for each in queue.pending)]
        # One query for all pairs: a queue of hundreds has few benchmarks and models.
        history = await self.store.past_runs({(run.order.benchmark, run.order.model) for run in known})
        rows = await self.store.planned_rows({run.order.benchmark for run in known if not run.is_planned})
        monotonic = self.clock.monotonic()
        measured = {
            run.run_id: MeasuredRun(
                self.tracker.counts(run.run_id, run.epoch),
                self.tracker.samples_per_second(run.run_id, monotonic),
            )
            for run in known
        }
        pools = self.registry.table().pools
        held = self.awaited_disk(DiskStage.NEW_RUNS) or ""
        moment = QueueMoment(queue, limits, self.clock.now(), pools, held)
        return QueueForecast(moment, measured, PastOfBenchmarks(history, rows))
