"""A retry: a stopped run waits its turn again, in a new epoch that asks only for what is missing."""

from dataclasses import dataclass

from services.common.clock import Clock
from services.scheduler import errors
from services.scheduler.ports import RunControls, RunStore
from services.scheduler.prices.cost_limit import cost_of, spent
from services.scheduler.runs.run import Run, RunId, RunState, may_become


@dataclass(frozen=True)
class RetryRun:
    runs: RunStore
    controls: RunControls
    clock: Clock

    async def retry(self, run_id: RunId) -> Run:
        """Can be repeated, since an answer may be lost, while the retry waits or runs."""
        _check_cost(await self.runs.get(run_id))
        pending = await self.runs.requeue(run_id, self.clock.now())
        if pending is None:
            return await self._under_way(run_id)
        await self.controls.tell(pending)
        return pending

    async def _under_way(self, run_id: RunId) -> Run:
        run = await self.runs.get(run_id)
        if run.epoch == 1 or run.state not in (RunState.PENDING, RunState.RUNNING):
            raise errors.RunNotRetryable(run_id=run_id, state=run.state)
        return run


def _check_cost(run: Run) -> None:
    """What was paid stays paid: a run at its cost limit would stop at once."""
    cost, most = cost_of(run, run.final_counts), run.order.max_cost
    is_at_limit = cost is not None and most is not None and cost >= most
    if is_at_limit and may_become(run.state, RunState.PENDING):
        raise errors.CostLimitStays(run_id=run.run_id, spent=spent(run, cost or 0.0))
