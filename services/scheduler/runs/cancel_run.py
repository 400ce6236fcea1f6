"""Cancelling: the row says so at once, workers hear of it, the leader purges, sums up and closes."""

from dataclasses import dataclass

from services.common.clock import Clock
from services.scheduler import errors
from services.scheduler.ports import RunControls, RunStore
from services.scheduler.runs.run import Run, RunId


@dataclass(frozen=True)
class CancelRun:
    runs: RunStore
    controls: RunControls
    clock: Clock

    async def cancel(self, run_id: RunId) -> Run:
        cancelled = await self.runs.cancel(run_id, self.clock.now())
        if cancelled is None:
            run = await self.runs.get(run_id)
            raise errors.RunAlreadyFinished(run_id=run_id, state=run.state)
        await self.controls.tell(cancelled)
        return cancelled
