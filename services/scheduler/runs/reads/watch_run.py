"""Watches a run: shows it again at each change, until it is over."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from proctor.values.run import RunId
from services.common.clock import Clock
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.runs.reads.run_snapshot import RunSnapshot
from services.scheduler.runs.reads.show_run import ShowRun

# The row is read again after this time, since a notice may be lost.
POLL_SECONDS = 1.0
# The shortest time between two snapshots for a watcher: each costs two queries.
INTERVAL_SECONDS = 0.2


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
            if snapshot.run.is_over:
                return
            await asyncio.sleep(INTERVAL_SECONDS)
            await self.tracker.wait_beyond(run_id, version, POLL_SECONDS, self.clock.monotonic())
