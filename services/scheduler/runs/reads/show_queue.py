"""The queue as people see it: what runs, what waits, which limit holds it and when its turn comes."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.common.clock import Clock
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.runs.admission.ports import QueueStore
from services.scheduler.runs.admission.queue_forecast import QueueForecast, QueueMoment, RunRate
from services.scheduler.runs.admission.run_queue import RunWait, UserRunCounts
from services.scheduler.runs.lifecycle.run import Run, RunId
from services.scheduler.runs.limits.ports import LimitStore
from services.scheduler.runs.limits.queue_limits import QueueLimits
from services.scheduler.runs.reads.run_snapshot import LiveFigures, RunSnapshot, progress_of
from services.scheduler.workers.ports import WorkerRegistry
from services.scheduler.workers.worker import Worker

# Waiting runs that are looked at; those behind them know their place, but not their time.
MOST_LISTED = 500
# All who look within this time see the same moment: the cost does not grow with how many look.
MOMENT_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class QueueView:
    running: Sequence[RunSnapshot]
    waiting: Sequence[RunSnapshot]
    waiting_total: int
    paused: Sequence[RunSnapshot]
    workers: Sequence[Worker]
    limits: QueueLimits
    users: Sequence[UserRunCounts]


@dataclass
class ShowQueue:
    store: QueueStore
    limits: LimitStore
    tracker: ProgressTracker
    registry: WorkerRegistry
    clock: Clock
    moment_seconds: float = MOMENT_SECONDS

    def __post_init__(self) -> None:
        self._seen: QueueForecast | None = None
        self._seen_at = 0.0
        self._looking = asyncio.Lock()

    async def show(self, size: int) -> QueueView:
        """With at most `size` waiting and as many paused runs."""
        forecast = await self._look()
        queue = forecast.moment.queue
        return QueueView(
            running=[self._snapshot(run) for run in queue.running],
            waiting=[
                self._snapshot(each.run, forecast.wait(each.run.run_id)) for each in queue.waiting[:size]
            ],
            waiting_total=queue.waiting_total,
            paused=[self._snapshot(run) for run in queue.paused[:size]],
            workers=self.registry.workers(),
            limits=forecast.moment.limits,
            users=queue.users,
        )

    async def waits(self, runs: Sequence[Run]) -> Mapping[RunId, RunWait]:
        """Of pending runs; without those that were admitted meanwhile."""
        if not runs:
            return {}
        forecast = await self._look(runs)
        waits = {run.run_id: forecast.wait(run.run_id) for run in runs}
        far = [run_id for run_id, wait in waits.items() if wait is None and not forecast.knows(run_id)]
        if far and not forecast.is_whole:
            positions = await self.store.positions(far)
            waits.update({run_id: forecast.far_wait(position) for run_id, position in positions.items()})
        return {run_id: wait for run_id, wait in waits.items() if wait}

    async def seconds_to_end(self, run: Run) -> float | None:
        """Of a run that was submitted just now, its wait included; None where nothing tells."""
        return (await self._look([run])).seconds_to_end(run)

    async def _look(self, runs: Sequence[Run] = ()) -> QueueForecast:
        """A new look where the last one is too old, or too old to know these runs."""
        asked_at = self.clock.monotonic()
        async with self._looking:
            seen = self._seen
            is_young = asked_at - self._seen_at < self.moment_seconds
            is_news = seen is not None and seen.is_whole and not all(seen.knows(run.run_id) for run in runs)
            if seen is None or not is_young or is_news:
                seen = await self._forecast()
                self._seen, self._seen_at = seen, asked_at
            return seen

    async def _forecast(self) -> QueueForecast:
        limits = await self.limits.limits()
        queue = await self.store.queue(MOST_LISTED)
        known = [*queue.running, *(each.run for each in queue.waiting)]
        history = await self.store.past_runs({(run.order.subject, run.order.model) for run in known})
        monotonic = self.clock.monotonic()
        paces = {
            run.run_id: RunRate(
                self.tracker.counts(run.run_id, run.epoch),
                self.tracker.samples_per_second(run.run_id, monotonic),
            )
            for run in known
        }
        pools = frozenset(worker.pool for worker in self.registry.workers())
        return QueueForecast(QueueMoment(queue, limits, self.clock.now(), pools), paces, history)

    def _snapshot(self, run: Run, wait: RunWait | None = None) -> RunSnapshot:
        live = LiveFigures(
            counts=self.tracker.counts(run.run_id, run.epoch),
            speed=self.tracker.speed(run.run_id, self.clock.monotonic()),
            workers=self.registry.workers(),
        )
        return RunSnapshot(run, progress_of(run, live), wait)
