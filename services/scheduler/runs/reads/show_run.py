"""Shows one run with its progress, its wait in the queue and its changes; again at each change if watched."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from proctor.values.run import RunId, RunState
from services.common.clock import Clock
from services.scheduler.audit.ports import ChangeList
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.runs.admission.forecast_queue import ForecastQueue
from services.scheduler.runs.lifecycle.ports import RunStore
from services.scheduler.runs.reads.count_runs import CountRuns
from services.scheduler.runs.reads.run_snapshot import RunSnapshot

# The latest; the list of changes has the others.
MAX_CHANGES = 20
# The row is read again after this time, since a notice may be lost.
POLL_SECONDS = 1.0
# The shortest time between two snapshots for a watcher: each costs two queries.
INTERVAL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class ShowRun:
    runs: RunStore
    count_runs: CountRuns
    forecasts: ForecastQueue
    changes: ChangeList

    async def show(self, run_id: RunId) -> RunSnapshot:
        run = await self.runs.get(run_id)
        tasks = await self.runs.planned_tasks(run_id) if run.planned_epoch else ()
        counts = await self.count_runs.count(run)
        waits = await self.forecasts.waits([run] if run.state is RunState.PENDING else [])
        changes = await self.changes.page(MAX_CHANGES, None, object_id=run_id)
        snapshot = self.count_runs.snapshot(run, counts, waits.get(run_id), tasks)
        return replace(snapshot, changes=changes.changes)


@dataclass(frozen=True, slots=True)
class WatchRun:
    show_run: ShowRun
    tracker: ProgressTracker
    clock: Clock

    async def watch(self, run_id: RunId) -> AsyncIterator[RunSnapshot]:
        """The run now, then whenever it has changed; the last one is final and closed."""
        shown: RunSnapshot | None = None
        while True:
            # Before the read: a change during it ends the wait below at once.
            version = self.tracker.version(run_id)
            snapshot = await self.show_run.show(run_id)
            if snapshot != shown:
                yield snapshot
                shown = snapshot
            if snapshot.run.is_closed:
                return
            await asyncio.sleep(INTERVAL_SECONDS)
            await self.tracker.wait_beyond(run_id, version, POLL_SECONDS, self.clock.monotonic())
