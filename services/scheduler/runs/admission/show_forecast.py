"""Forecasts the queue: when pending runs start, and when a run that was just submitted ends."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.values.run import RunId
from services.common.clock import Clock
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.runs.admission.ports import QueueStore
from services.scheduler.runs.admission.queue_forecast import QueueForecast, QueueMoment, RunRate
from services.scheduler.runs.admission.run_queue import RunWait
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.limits.ports import LimitStore
from services.scheduler.workers.ports import WorkerRegistry

# Pending runs that are forecast. Those behind them have a position but no time.
MOST_FORECAST = 500
# Calls within this time share a forecast, so that the cost does not grow with the number of calls.
MAX_AGE_SECONDS = 0.5


@dataclass
class ForecastQueue:
    store: QueueStore
    limits: LimitStore
    tracker: ProgressTracker
    registry: WorkerRegistry
    clock: Clock
    max_age_seconds: float = MAX_AGE_SECONDS

    def __post_init__(self) -> None:
        self._latest: QueueForecast | None = None
        self._made_at = 0.0
        self._making = asyncio.Lock()

    async def forecast(self, runs: Sequence[Run] = ()) -> QueueForecast:
        """The latest forecast, or a new one if that is too old, or older than one of these runs."""
        asked_at = self.clock.monotonic()
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
                self._latest, self._made_at = latest, asked_at
            return latest

    async def waits(self, runs: Sequence[Run]) -> Mapping[RunId, RunWait]:
        """Waits of pending runs; runs that were admitted meanwhile are left out."""
        if not runs:
            return {}
        forecast = await self.forecast(runs)
        waits = {run.run_id: forecast.wait(run.run_id) for run in runs}
        far = [run_id for run_id, wait in waits.items() if wait is None and not forecast.contains(run_id)]
        if far and not forecast.is_whole:
            positions = await self.store.positions(far)
            waits.update({run_id: forecast.far_wait(position) for run_id, position in positions.items()})
        return {run_id: wait for run_id, wait in waits.items() if wait}

    async def seconds_to_end(self, run: Run) -> float | None:
        """The estimate of a run that was just submitted, its wait included; None if nothing is known."""
        return (await self.forecast([run])).seconds_to_end(run)

    async def _make(self) -> QueueForecast:
        limits = await self.limits.limits()
        queue = await self.store.queue(MOST_FORECAST)
        known = [*queue.running, *(each.run for each in queue.waiting)]
        history = await self.store.past_runs({(run.order.subject, run.order.model) for run in known})
        monotonic = self.clock.monotonic()
        rates = {
            run.run_id: RunRate(
                self.tracker.counts(run.run_id, run.epoch),
                self.tracker.samples_per_second(run.run_id, monotonic),
            )
            for run in known
        }
        pools = frozenset(worker.pool for worker in self.registry.workers())
        return QueueForecast(QueueMoment(queue, limits, self.clock.now(), pools), rates, history)
