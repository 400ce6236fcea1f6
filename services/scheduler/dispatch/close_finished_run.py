"""Closes a run that has failed or was cancelled: its work is withdrawn, and what it has gets its figures."""

from dataclasses import dataclass

from proctor.values.run import RunCounts, RunState
from services.scheduler.dispatch.count_unscored import CountUnscored
from services.scheduler.dispatch.ports import ClosableRecord, ShardStream
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.metrics import RUN_COST, RUNS_FINISHED
from services.scheduler.planning.ports import ClosingProgress, ShardStore
from services.scheduler.runs.lifecycle.cost_limit import cost_of
from services.scheduler.runs.lifecycle.ports import LedRunStore, RunControls
from services.scheduler.runs.lifecycle.run import Run


@dataclass(frozen=True, slots=True)
class CloseFinishedRun:
    runs: LedRunStore
    shards: ShardStore
    record: ClosableRecord
    stream: ShardStream
    controls: RunControls
    unscored: CountUnscored

    async def withdraw_work(self, run: Run) -> None:
        """Announces that the run is not running, and removes its work from the stream."""
        await self.controls.announce(run)
        await self.stream.purge_work(run)

    async def are_outcomes_in(self, run: Run) -> bool:
        """Also whether workers have said what the rollouts used that they broke off."""
        return not await self.stream.pending_outcomes(run.run_id) and await self.unscored.settle(run)

    async def close(self, token: FencingToken, run: Run) -> bool:
        """Sums up what a failed or cancelled run has recorded, also where its epoch was never opened.

        Returns False while its figures are computed.
        """
        await self.unscored.settle(run)
        unscored = await self.unscored.count(run)
        counts = await self.record.close_run(run, run.state, allow_partial=True, unscored=unscored)
        if isinstance(counts, ClosingProgress):
            return False
        await self._close(token, run, counts)
        return True

    async def close_without_counts(self, token: FencingToken, run: Run) -> None:
        """Closes a run whose counts results cannot say."""
        await self._close(token, run, None)

    async def _close(self, token: FencingToken, run: Run, counts: RunCounts | None) -> None:
        await self.shards.delete_shards(token, run)
        await self.runs.mark_closed(token, run, counts)
        # After the write: a close that is repeated by a new leader is counted by the one that stored it.
        count_closed(run, run.state, counts)
        await self.controls.announce(run)


def count_closed(run: Run, state: RunState, counts: RunCounts | None) -> None:
    """Once for each time that a run is closed."""
    RUNS_FINISHED.labels(state, run.error.reason if run.error else "").inc()
    cost = cost_of(run, counts)
    if run.price is not None and cost is not None:
        RUN_COST.labels(run.pool, run.price.currency).inc(cost)
