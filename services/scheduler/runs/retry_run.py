"""A retry: a stopped run waits its turn again, in a new epoch that asks only for what is missing."""

from dataclasses import dataclass

from services.common.clock import Clock
from services.scheduler import errors
from services.scheduler.ports import RunControls, RunStore
from services.scheduler.runs.run import Run, RunId


@dataclass(frozen=True)
class RetryRun:
    runs: RunStore
    controls: RunControls
    clock: Clock
    max_pending_per_user: int

    async def retry(self, run_id: RunId) -> Run:
        pending = await self.runs.requeue(run_id, self.clock.now(), self.max_pending_per_user)
        if pending is None:
            run = await self.runs.get(run_id)
            raise errors.RunNotRetryable(run_id=run_id, state=run.state)
        await self.controls.tell(pending)
        return pending
