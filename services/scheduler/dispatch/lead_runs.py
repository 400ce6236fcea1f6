"""The leader's work on runs: it ends those that waited too long, and admits and drives the others."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from proctor.values.run import RunId, RunState
from proctor.values.sample import SHARD_SAMPLES
from services.common.clock import Clock
from services.common.structured_logs import error_text, get_logger
from services.common.traces import is_tracing, span
from services.scheduler.disks.disk_use import AwaitedDisk, DiskStage
from services.scheduler.dispatch.dispatch_shards import PoolLoad
from services.scheduler.dispatch.drive_run import DriveRun
from services.scheduler.dispatch.ports import ShardStream
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.metrics import QUEUE_WAIT
from services.scheduler.progress.progress_tracker import ANY_RUN, ProgressTracker
from services.scheduler.runs.admission.run_slots import SlotChanges
from services.scheduler.runs.lifecycle.ports import LedRunStore, RunControls
from services.scheduler.runs.lifecycle.run import RunFinish, deadline_error

log = get_logger()

NewDriver = Callable[[FencingToken, RunId, Callable[[str], PoolLoad]], DriveRun]

# Reports that arrive within this time are handled in one step.
_GATHER_SECONDS = 0.04
# A report wakes the loop at once. This bounds what no report announces: deadlines and a lost stream.
_ROUND_SECONDS = 1.0
# Without it a run whose dependency is away would fail in a busy loop.
_BACKOFF_SECONDS = 0.5
# Work goes at the second sweep that finds its run closed: workers have a minute to see that.
_SWEEP_SECONDS = 60.0
# The part of a pool's stream that its runs share. The rest is for shards that are larger than what is left
# of this part.
_SHARED_PART = 0.8
# After this time without runs in the queue, a user counts as new.
_ADMISSION_KEPT = timedelta(days=1)


class SlotStore(Protocol):
    """Assigns slots. Writes raise `LeadershipLost` once another scheduler leads."""

    async def admit(self, token: FencingToken, now: datetime) -> SlotChanges:
        """Starts the runs that come next under the limits of this moment, and preempts others for them."""
        ...

    async def delete_admissions(self, token: FencingToken, before: datetime) -> None:
        """Deletes old admissions of users who have no runs in the queue."""
        ...


@dataclass(frozen=True, slots=True)
class LeadRuns:
    """Begins a term; keeps nothing between terms."""

    runs: LedRunStore
    slots: SlotStore
    stream: ShardStream
    controls: RunControls
    tracker: ProgressTracker
    clock: Clock
    new_driver: NewDriver
    awaited_disk: AwaitedDisk
    pools: tuple[str, ...] = ()

    async def lead(self, token: FencingToken) -> None:
        """Leads until cancelled, or until another leads (`LeadershipLost`)."""
        async with asyncio.TaskGroup() as group:
            led = _LedRuns(self, token, group)
            # Beside the admission, which must not wait for NATS: streams may be slow or away.
            group.create_task(led.watch_streams(), name="watch streams")
            await led.run()


class _LedRuns:
    def __init__(self, lead: LeadRuns, token: FencingToken, group: asyncio.TaskGroup) -> None:
        self._lead = lead
        self._token = token
        self._group = group
        self._drivers: dict[RunId, DriveRun] = {}
        self._stream_generation = ""
        self._swept_at = 0.0
        self._leftovers: frozenset[RunId] = frozenset()
        self._pool_bytes: dict[str, float] = {}

    async def run(self) -> None:
        while True:
            # Read before the steps: what is reported during them ends the wait below at once.
            version = self._lead.tracker.version(ANY_RUN)
            await self._guarded(self._end_expired)
            await self._guarded(self._admit_and_drive)
            now = self._lead.clock.monotonic()
            await self._lead.tracker.wait_beyond(ANY_RUN, version, _ROUND_SECONDS, now)

    async def watch_streams(self) -> None:
        """Notices streams that were made again, and removes what is left in them."""
        while True:
            version = self._lead.tracker.version(ANY_RUN)
            await self._guarded(self._sweep)
            await self._guarded(self._note_lost_streams)
            now = self._lead.clock.monotonic()
            await self._lead.tracker.wait_beyond(ANY_RUN, version, _ROUND_SECONDS, now)

    async def _guarded(self, step: Callable[[], Awaitable[None]]) -> None:
        try:
            await step()
        except LeadershipLost:
            raise
        except Exception as error:  # noqa: BLE001  # the edge of a loop that must not end
            log.warning("leader step failed", step=step.__name__, error=error_text(error))

    async def _end_expired(self) -> None:
        """Ends pending and paused runs; drivers end running ones."""
        lead, now = self._lead, self._lead.clock.now()
        for run in await lead.runs.expired(now):
            late = deadline_error(run, now)
            if late and await lead.runs.finish(self._token, run, RunFinish(RunState.FAILED, now, late)):
                log.info("run failed", run_id=run.run_id, reason=late.reason, message=late.message)
                await lead.controls.announce(replace(run, state=RunState.FAILED))

    async def _admit_and_drive(self) -> None:
        lead = self._lead
        # Pending runs wait while a disk fills up; those that run are driven.
        is_full = lead.awaited_disk(DiskStage.NEW_RUNS) is not None
        moves = SlotChanges() if is_full else await lead.slots.admit(self._token, lead.clock.now())
        for run_id in moves.preempted:
            log.info("run preempted", run_id=run_id)
            lead.tracker.touch(run_id, lead.clock.monotonic())
        for priority, seconds in moves.waits:
            QUEUE_WAIT.labels(priority).observe(seconds)
        for run_id in moves.admitted:
            log.info("run admitted", run_id=run_id)
            lead.tracker.touch(run_id, lead.clock.monotonic())
        # A preempted run is driven once more, to withdraw its work.
        for run_id in (*moves.preempted, *await lead.runs.to_drive()):
            if run_id not in self._drivers:
                driver = lead.new_driver(self._token, run_id, self._load_of)
                self._drivers[run_id] = driver
                self._group.create_task(self._drive(run_id, driver), name=f"run {run_id}")

    async def _drive(self, run_id: RunId, driver: DriveRun) -> None:
        trace = await self._lead.runs.trace(run_id) if is_tracing() else ""
        with span("run", parent=trace, attributes={"proctor.run_id": run_id}):
            await self._drive_to_end(run_id, driver)

    async def _drive_to_end(self, run_id: RunId, driver: DriveRun) -> None:
        tracker, clock = self._lead.tracker, self._lead.clock
        try:
            is_done = False
            while not is_done:
                # Before the step, for the same reason as above.
                version = tracker.version(run_id)
                is_done = await self._advance(run_id, driver)
                # Also after the last step: results and workers are asked by each step, and bursts are common.
                await asyncio.sleep(_GATHER_SECONDS)
                if not is_done:
                    await tracker.wait_beyond(run_id, version, _ROUND_SECONDS, clock.monotonic())
        finally:
            del self._drivers[run_id]
            tracker.drop_shards(run_id)
            # Wakes those who watch the run, and the admission: a slot may be free.
            tracker.touch(run_id, clock.monotonic())

    async def _advance(self, run_id: RunId, driver: DriveRun) -> bool:
        try:
            return await driver.advance()
        except LeadershipLost:
            raise
        except Exception as error:  # one run's trouble is not the others'
            log.warning("run step failed", run_id=run_id, error=error_text(error), exc_info=error)
            driver.reset()
            await asyncio.sleep(_BACKOFF_SECONDS)
            return False

    async def _note_lost_streams(self) -> None:
        """A recreated stream has lost its messages: every run is searched for missing outcomes."""
        stream_generation = await self._lead.stream.stream_generation(self._lead.pools)
        # Empty is the first look of this term: a driver that starts reads the stores anyway.
        if self._stream_generation not in ("", stream_generation):
            log.warning("stream recreated", was=self._stream_generation, now=stream_generation)
            for driver in self._drivers.values():
                driver.note_possible_loss()
        self._stream_generation = stream_generation

    async def _sweep(self) -> None:
        """Removes what workers sent back of closed runs, deletes old admissions, looks at sizes."""
        now = self._lead.clock.monotonic()
        if now - self._swept_at < _SWEEP_SECONDS:
            return
        self._swept_at = now
        for pool in self._lead.pools:
            self._pool_bytes[pool] = _SHARED_PART * await self._lead.stream.max_bytes(pool)
        working = frozenset(await self._lead.stream.runs_with_work(self._lead.pools))
        leftovers = working - frozenset(await self._lead.runs.open_among(tuple(working)))
        if closed := leftovers & self._leftovers:
            await self._lead.stream.purge_leftovers(closed, self._lead.pools)
        self._leftovers = leftovers
        await self._lead.slots.delete_admissions(self._token, self._lead.clock.now() - _ADMISSION_KEPT)

    def _load_of(self, pool: str) -> PoolLoad:
        drivers = [driver for driver in self._drivers.values() if driver.pool == pool]
        # No limit before the first sweep has read the size; a full stream refuses by itself.
        held = sum(driver.dispatched_bytes for driver in drivers)
        largest = max([SHARD_SAMPLES, *(driver.shard_samples for driver in drivers)])
        return PoolLoad(max(len(drivers), 1), self._pool_bytes.get(pool, math.inf) - held, largest)
