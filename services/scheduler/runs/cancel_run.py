"""Cancelling: the row says so at once, workers hear of it, the leader purges, sums up and closes."""

from dataclasses import dataclass

from services.common.clock import Clock
from services.scheduler import errors
from services.scheduler.ports import RunControls, RunStore
from services.scheduler.runs.run import Run, RunId, RunState


@dataclass(frozen=True)
class CancelRun:
    runs: RunStore
    controls: RunControls
    clock: Clock

    async def cancel(self, run_id: RunId) -> Run:
        """Can be repeated, since an answer may be lost, until the cancelled run is summed up."""
        cancelled = await self.runs.cancel(run_id, self.clock.now()) or await self.runs.get(run_id)
        if cancelled.is_over or cancelled.state is not RunState.CANCELLED:
            raise errors.RunAlreadyFinished(run_id=run_id, state=cancelled.told_state)
        await self.controls.tell(cancelled)
        return cancelled
