"""Shows runs: one with its progress, a page of them, one again at each change, or the whole queue."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from proctor.values.run import RunCounts, RunId, RunState
from services.common.clock import Clock
from services.common.errors import DomainError, ErrorKind
from services.scheduler.changes.user_change import ChangeList
from services.scheduler.limits.queue_limits import QueueLimits
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.runs.admission.run_queue import RunWait, UserRunCounts
from services.scheduler.runs.admission.show_forecast import ForecastQueue
from services.scheduler.runs.lifecycle.ports import RunStore
from services.scheduler.runs.lifecycle.run import PlannedTask, Run
from services.scheduler.runs.reads.run_list import RecordedCounts, RunCursor, RunFilter, RunLists
from services.scheduler.runs.reads.run_snapshot import (
    RunForecast,
    RunSnapshot,
    estimated_cost,
    progress_of,
)
from services.scheduler.workers.worker import Worker, WorkerRegistry

# The row is read again after this time, since a notice may be lost.
POLL_SECONDS = 1.0
# The shortest time between two snapshots for a watcher: each costs two queries.
INTERVAL_SECONDS = 0.2
# For a list, concurrent requests to results and their time limit.
# Bounds what one page asks of results at once; a page may have 500 runs.
COUNTS_AT_A_TIME = 8
COUNTS_SECONDS = 2.0
# The latest; the list of changes has the others.
MOST_CHANGES = 20


@dataclass(frozen=True, slots=True)
class SnapshotPage:
    snapshots: Sequence[RunSnapshot]
    total: int


@dataclass(frozen=True, slots=True)
class QueueView:
    running: Sequence[RunSnapshot]
    waiting: Sequence[RunSnapshot]
    waiting_total: int
    paused: Sequence[RunSnapshot]
    workers: Sequence[Worker]
    limits: QueueLimits
    users: Sequence[UserRunCounts]


@dataclass(frozen=True, slots=True)
class ShowRun:
    runs: RunStore
    lists: RunLists
    record: RecordedCounts
    tracker: ProgressTracker
    registry: WorkerRegistry
    clock: Clock
    forecasts: ForecastQueue
    changes: ChangeList

    async def show(self, run_id: RunId) -> RunSnapshot:
        run = await self.runs.get(run_id)
        tasks = await self.runs.planned_tasks(run_id) if run.planned_epoch else ()
        counts = await self.counts(run)
        waits = await self.forecasts.waits([run] if run.state is RunState.PENDING else [])
        changes = await self.changes.page(MOST_CHANGES, None, object_id=run_id)
        snapshot = self._snapshot(run, counts, waits.get(run_id), tasks)
        return replace(snapshot, changes=changes.changes)

    async def forecast(self, run: Run) -> RunForecast:
        """When a run that was just submitted will end, and what it will cost."""
        seconds = await self.forecasts.seconds_to_end(run)
        if run.price is None:
            return RunForecast(seconds, None)
        history = await self.lists.past_usage(run)
        return RunForecast(seconds, estimated_cost(run.order, run.price, history))

    async def page(self, wanted: RunFilter, size: int, after: RunCursor | None) -> SnapshotPage:
        page = await self.lists.page(wanted, size, after)
        return SnapshotPage(await self.briefly(page.runs), page.total)

    async def briefly(self, runs: Sequence[Run]) -> Sequence[RunSnapshot]:
        """Some of many runs: without the progress of their tasks and without their changes."""
        waits = await self.forecasts.waits([run for run in runs if run.state is RunState.PENDING])
        counts = await self.counts_of_all(runs)
        return [self._snapshot(run, counts.get(run.run_id), waits.get(run.run_id)) for run in runs]

    async def queue(self, size: int) -> QueueView:
        """Returns at most `size` waiting and as many paused runs, and all running ones."""
        forecast = await self.forecasts.forecast()
        queue = forecast.moment.queue
        return QueueView(
            running=[self._snapshot(run, self._known_counts(run)) for run in queue.running],
            waiting=[
                self._snapshot(each.run, self._known_counts(each.run), forecast.wait(each.run.run_id))
                for each in queue.waiting[:size]
            ],
            waiting_total=queue.waiting_total,
            paused=[self._snapshot(run, self._known_counts(run)) for run in queue.paused[:size]],
            workers=self.registry.workers(),
            limits=forecast.moment.limits,
            users=queue.users,
        )

    async def watch(self, run_id: RunId) -> AsyncIterator[RunSnapshot]:
        """The run now, then whenever it has changed; the last one is final and closed."""
        shown: RunSnapshot | None = None
        while True:
            # Before the read: a change during it ends the wait below at once.
            version = self.tracker.version(run_id)
            snapshot = await self.show(run_id)
            if snapshot != shown:
                yield snapshot
                shown = snapshot
            if snapshot.run.is_over:
                return
            await asyncio.sleep(INTERVAL_SECONDS)
            await self.tracker.wait_beyond(run_id, version, POLL_SECONDS, self.clock.monotonic())

    async def counts(self, run: Run) -> RunCounts | None:
        known = self._known_counts(run)
        if known is not None or not run.is_planned:
            return known
        try:
            news = await self.record.counts(run.run_id)
        except DomainError as error:
            if error.kind in (ErrorKind.UNAVAILABLE, ErrorKind.NOT_FOUND):
                return None  # a run is shown without its counts rather than not at all
            raise
        self.tracker.record(news, self.clock.monotonic())
        return self.tracker.counts(run.run_id, run.epoch)

    async def counts_of_all(self, runs: Sequence[Run]) -> Mapping[RunId, RunCounts | None]:
        """Counts for a page of runs. Missing ones are fetched from results, for at most COUNTS_SECONDS."""
        counts = {run.run_id: self._known_counts(run) for run in runs}
        missing = [run for run in runs if run.is_planned and not run.is_closed and counts[run.run_id] is None]
        slots = asyncio.Semaphore(COUNTS_AT_A_TIME)

        async def ask(run: Run) -> None:
            async with slots:
                with suppress(DomainError):
                    counts[run.run_id] = await self.counts(run)

        # Runs without counts by then are shown without them.
        with suppress(TimeoutError):
            async with asyncio.timeout(COUNTS_SECONDS), asyncio.TaskGroup() as group:
                for run in missing:
                    group.create_task(ask(run), name=f"counts of {run.run_id}")
        return counts

    def _known_counts(self, run: Run) -> RunCounts | None:
        return run.final_counts if run.is_closed else self.tracker.counts(run.run_id, run.epoch)

    def _snapshot(
        self,
        run: Run,
        counts: RunCounts | None,
        wait: RunWait | None = None,
        tasks: Sequence[PlannedTask] = (),
    ) -> RunSnapshot:
        speed = self.tracker.speed(run.run_id, self.clock.monotonic())
        return RunSnapshot(run, progress_of(run, counts, speed, self.registry.workers(), tasks), wait)
