"""Pausing: the row says so at once, workers hear of it, the leader takes what waits off the wire."""

from dataclasses import dataclass

from services.common.clock import Clock
from services.scheduler import errors
from services.scheduler.ports import RunControls, RunStore
from services.scheduler.runs.run import Run, RunId, RunState


@dataclass(frozen=True)
class PauseRun:
    runs: RunStore
    controls: RunControls
    clock: Clock

    async def pause(self, run_id: RunId) -> Run:
        """Can be repeated, since an answer may be lost."""
        paused = await self.runs.pause(run_id, self.clock.now()) or await self.runs.get(run_id)
        if paused.state is not RunState.PAUSED:
            raise errors.RunNotPausable(run_id=run_id, state=paused.told_state)
        await self.controls.tell(paused)
        return paused
