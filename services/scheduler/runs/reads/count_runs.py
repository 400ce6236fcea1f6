"""Counts the outcomes of runs, as far as they are known or results can be asked."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from proctor.values.run import RunCounts, RunId, RunState
from services.common.clock import Clock
from services.common.errors import DomainError, ErrorKind
from services.scheduler.disks.disk_use import AwaitedDisk, DiskStage
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.runs.admission.run_queue import RunWait
from services.scheduler.runs.lifecycle.run import PlannedTask, Run
from services.scheduler.runs.reads.ports import RecordedCounts
from services.scheduler.runs.reads.run_snapshot import RunSnapshot, progress_of
from services.scheduler.streams.refused_streams import RefusedStreams, awaited_stream
from services.scheduler.workers.ports import WorkerRegistry
from services.scheduler.workers.worker import awaited_server, awaited_worker

# For a list, concurrent requests to results and their time limit.
# Bounds what one page asks of results at once; a page may have 500 runs.
COUNTS_AT_A_TIME = 8
COUNTS_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class CountRuns:
    record: RecordedCounts
    tracker: ProgressTracker
    registry: WorkerRegistry
    refused_streams: RefusedStreams
    awaited_disk: AwaitedDisk
    clock: Clock

    async def count(self, run: Run) -> RunCounts | None:
        known = self.known(run)
        if known is not None or not run.is_planned:
            return known
        try:
            report = await self.record.counts(run.run_id)
        except DomainError as error:
            if error.kind in (ErrorKind.UNAVAILABLE, ErrorKind.NOT_FOUND):
                return None  # a run is shown without its counts rather than not at all
            raise
        self.tracker.record(report, self.clock.monotonic())
        return self.tracker.counts(run.run_id, run.epoch)

    async def count_all(self, runs: Sequence[Run]) -> Mapping[RunId, RunCounts | None]:
        """Counts for a page of runs. Missing ones are fetched from results, for at most COUNTS_SECONDS."""
        counts = {run.run_id: self.known(run) for run in runs}
        missing = [run for run in runs if run.is_planned and not run.is_closed and counts[run.run_id] is None]
        slots = asyncio.Semaphore(COUNTS_AT_A_TIME)

        async def ask(run: Run) -> None:
            async with slots:
                with suppress(DomainError):
                    counts[run.run_id] = await self.count(run)

        # Runs without counts by then are shown without them.
        with suppress(TimeoutError):
            async with asyncio.timeout(COUNTS_SECONDS), asyncio.TaskGroup() as group:
                for run in missing:
                    group.create_task(ask(run), name=f"counts of {run.run_id}")
        return counts

    def known(self, run: Run) -> RunCounts | None:
        """Counts that need no call: those of a closed run, and those that results has reported."""
        return run.final_counts if run.is_closed else self.tracker.counts(run.run_id, run.epoch)

    def snapshot(
        self,
        run: Run,
        counts: RunCounts | None,
        wait: RunWait | None = None,
        tasks: Sequence[PlannedTask] = (),
    ) -> RunSnapshot:
        """The run as it is shown, with its progress at these counts."""
        speed = self.tracker.speed(run.run_id, self.clock.monotonic())
        waits_for = self._waits_for(run)
        return RunSnapshot(run, progress_of(run, counts, speed, waits_for, tasks), wait)

    def _waits_for(self, run: Run) -> str | None:
        """What a running run waits for; None if it goes on."""
        if run.state is not RunState.RUNNING:
            return None
        workers = self.registry.workers()
        return (
            # First: without its streams and buckets NATS shows no worker either.
            awaited_stream(run.pool, self.refused_streams())
            or self.awaited_disk(DiskStage.DISPATCH)
            or awaited_worker(run.order.model, run.pool, workers)
            or awaited_server(run.order.base_url, run.pool, workers)
        )
