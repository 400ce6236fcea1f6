"""A retry: a stopped run waits its turn again, in a new epoch that asks only for what is missing."""

from dataclasses import dataclass

from services.common.clock import Clock
from services.scheduler import errors
from services.scheduler.ports import RunControls, RunStore
from services.scheduler.runs.run import Run, RunId, RunState


@dataclass(frozen=True)
class RetryRun:
    runs: RunStore
    controls: RunControls
    clock: Clock
    max_pending_per_user: int

    async def retry(self, run_id: RunId) -> Run:
        """Can be repeated, since an answer may be lost, while the retry waits or runs."""
        pending = await self.runs.requeue(run_id, self.clock.now(), self.max_pending_per_user)
        if pending is None:
            return await self._under_way(run_id)
        await self.controls.tell(pending)
        return pending

    async def _under_way(self, run_id: RunId) -> Run:
        run = await self.runs.get(run_id)
        if run.epoch == 1 or run.state not in (RunState.PENDING, RunState.RUNNING):
            raise errors.RunNotRetryable(run_id=run_id, state=run.state)
        return run
