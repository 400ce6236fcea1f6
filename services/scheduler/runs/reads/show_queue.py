"""The queue as users see it: running, waiting and paused runs, and the limits that order them."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.common.clock import Clock
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.runs.admission.run_queue import RunWait, UserRunCounts
from services.scheduler.runs.admission.show_forecast import ForecastQueue
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.limits.queue_limits import QueueLimits
from services.scheduler.runs.reads.run_snapshot import LiveFigures, RunSnapshot, progress_of
from services.scheduler.workers.ports import WorkerRegistry
from services.scheduler.workers.worker import Worker


@dataclass(frozen=True, slots=True)
class QueueView:
    running: Sequence[RunSnapshot]
    waiting: Sequence[RunSnapshot]
    waiting_total: int
    paused: Sequence[RunSnapshot]
    workers: Sequence[Worker]
    limits: QueueLimits
    users: Sequence[UserRunCounts]


@dataclass(frozen=True)
class ShowQueue:
    forecasts: ForecastQueue
    tracker: ProgressTracker
    registry: WorkerRegistry
    clock: Clock

    async def show(self, size: int) -> QueueView:
        """Returns at most `size` waiting and as many paused runs, and all running ones."""
        forecast = await self.forecasts.forecast()
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

    def _snapshot(self, run: Run, wait: RunWait | None = None) -> RunSnapshot:
        live = LiveFigures(
            counts=self.tracker.counts(run.run_id, run.epoch),
            speed=self.tracker.speed(run.run_id, self.clock.monotonic()),
            workers=self.registry.workers(),
        )
        return RunSnapshot(run, progress_of(run, live), wait)
