"""What the one leader does as long as its term lasts: end what waited too long, admit and drive the rest."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from services.common.clock import Clock
from services.common.structured_logs import get_logger
from services.scheduler.errors import LeadershipLost
from services.scheduler.ports import Fence, LedRunStore, RunControls, RunEnding, ShardWire
from services.scheduler.runs.drive_run import DriveRun
from services.scheduler.runs.late_run import lateness
from services.scheduler.runs.run import RunId, RunState
from services.scheduler.shards.progress_board import ANY_RUN, ProgressBoard

log = get_logger()

NewDriver = Callable[[Fence, RunId, Callable[[str], int]], DriveRun]

# Reports that come close together are dealt with in one step.
_GATHER_SECONDS = 0.04
_ROUND_SECONDS = 1.0
_PAUSE_AFTER_FAILURE_SECONDS = 0.5
_SWEEP_SECONDS = 60.0
# A user who has had nothing in the queue since is as good as a new one.
_TURN_KEPT = timedelta(days=1)


@dataclass(frozen=True)
class LeadRuns:
    """Begins a term; keeps nothing between terms."""

    runs: LedRunStore
    wire: ShardWire
    controls: RunControls
    board: ProgressBoard
    clock: Clock
    new_driver: NewDriver

    async def lead(self, fence: Fence) -> None:
        """Until cancelled, or until another leads (`LeadershipLost`)."""
        async with asyncio.TaskGroup() as group:
            await _Term(self, fence, group).run()


class _Term:
    def __init__(self, lead: LeadRuns, fence: Fence, group: asyncio.TaskGroup) -> None:
        self._lead = lead
        self._fence = fence
        self._group = group
        self._drivers: dict[RunId, DriveRun] = {}
        self._stream_generation = ""
        self._swept_at = 0.0
        self._leftovers: frozenset[RunId] = frozenset()

    async def run(self) -> None:
        while True:
            version = self._lead.board.version(ANY_RUN)
            for step in (self._end_expired, self._admit_and_drive, self._watch_streams, self._sweep):
                await self._guarded(step)
            now = self._lead.clock.monotonic()
            await self._lead.board.wait_beyond(ANY_RUN, version, _ROUND_SECONDS, now)

    async def _guarded(self, step: Callable[[], Awaitable[None]]) -> None:
        try:
            await step()
        except LeadershipLost:
            raise
        except Exception as error:  # noqa: BLE001  # the edge of a loop that must not end
            log.warning("leader step failed", step=step.__name__, error=repr(error))

    async def _end_expired(self) -> None:
        """Of what waits or is paused; drivers end what runs."""
        lead, now = self._lead, self._lead.clock.now()
        for run in await lead.runs.expired(now):
            late = lateness(run, now)
            if late and await lead.runs.finish(self._fence, run, RunEnding(RunState.FAILED, now, late)):
                log.info("run failed", run=run.run_id, reason=late.reason, message=late.message)
                await lead.controls.tell(replace(run, state=RunState.FAILED))

    async def _admit_and_drive(self) -> None:
        lead = self._lead
        moves = await lead.runs.admit(self._fence, lead.clock.now())
        for run_id in moves.gave_way:
            log.info("run gave way", run=run_id)
            lead.board.touch(run_id, lead.clock.monotonic())
        for run_id in moves.admitted:
            log.info("run admitted", run=run_id)
            lead.board.touch(run_id, lead.clock.monotonic())
        # What gave way is driven once more: off the wire.
        for run_id in (*moves.gave_way, *await lead.runs.unfinished()):
            if run_id not in self._drivers:
                driver = lead.new_driver(self._fence, run_id, self._runs_of_pool)
                self._drivers[run_id] = driver
                self._group.create_task(self._drive(run_id, driver), name=f"run {run_id}")

    async def _drive(self, run_id: RunId, driver: DriveRun) -> None:
        board, clock = self._lead.board, self._lead.clock
        try:
            is_done = False
            while not is_done:
                version = board.version(run_id)
                is_done = await self._advance(run_id, driver)
                await asyncio.sleep(_GATHER_SECONDS)
                if not is_done:
                    await board.wait_beyond(run_id, version, _ROUND_SECONDS, clock.monotonic())
        finally:
            del self._drivers[run_id]
            board.drop_shards(run_id)
            board.touch(run_id, clock.monotonic())

    async def _advance(self, run_id: RunId, driver: DriveRun) -> bool:
        try:
            return await driver.advance()
        except LeadershipLost:
            raise
        except Exception as error:  # one run's trouble is not the others'
            log.warning("run step failed", run=run_id, error=repr(error), exc_info=error)
            driver.reset()
            await asyncio.sleep(_PAUSE_AFTER_FAILURE_SECONDS)
            return False

    async def _watch_streams(self) -> None:
        """A stream that was made anew has lost its messages: every run looks for what it misses."""
        stream_generation = await self._lead.wire.stream_generation()
        if self._stream_generation not in ("", stream_generation):
            log.warning("a stream was made anew", was=self._stream_generation, now=stream_generation)
            for driver in self._drivers.values():
                driver.suspect()
        self._stream_generation = stream_generation

    async def _sweep(self) -> None:
        """Withdraws what is said of runs that ended a while ago, and forgets whose turn was long ago."""
        now = self._lead.clock.monotonic()
        if now - self._swept_at < _SWEEP_SECONDS:
            return
        self._swept_at = now
        told = await self._lead.controls.told()
        leftovers = frozenset(told) - frozenset(await self._lead.runs.live_among(told))
        for run_id in leftovers & self._leftovers:
            await self._lead.controls.withdraw(run_id)
        self._leftovers = leftovers
        await self._lead.runs.forget_turns(self._fence, self._lead.clock.now() - _TURN_KEPT)

    def _runs_of_pool(self, pool: str) -> int:
        return sum(driver.pool == pool for driver in self._drivers.values())
