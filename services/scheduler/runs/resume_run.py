"""Resuming: a paused run waits for a place again, and goes on where it stopped."""

from dataclasses import dataclass

from services.common.clock import Clock
from services.scheduler import errors
from services.scheduler.ports import RunControls, RunStore
from services.scheduler.runs.run import Run, RunId


@dataclass(frozen=True)
class ResumeRun:
    runs: RunStore
    controls: RunControls
    clock: Clock

    async def resume(self, run_id: RunId) -> Run:
        pending = await self.runs.resume(run_id, self.clock.now())
        if pending is None:
            run = await self.runs.get(run_id)
            raise errors.RunNotPaused(run_id=run_id, state=run.state)
        await self.controls.tell(pending)
        return pending
