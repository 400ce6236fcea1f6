"""Finishes a run: its record is closed, and only then is it completed."""

from dataclasses import dataclass, replace

from proctor.values.run import DEFAULT_MAX_FAILED_SHARE, RunCounts, RunState
from services.common.clock import Clock
from services.scheduler.dispatch.close_finished_run import count_closed
from services.scheduler.dispatch.count_unscored import CountUnscored
from services.scheduler.dispatch.ports import ClosableRecord
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.planning.ports import ClosingProgress, ShardStore
from services.scheduler.runs.lifecycle.ports import LedRunStore, RunControls
from services.scheduler.runs.lifecycle.run import CLOSING, Run, RunError, RunFinish


@dataclass(frozen=True, slots=True)
class FinishRun:
    runs: LedRunStore
    shards: ShardStore
    record: ClosableRecord
    controls: RunControls
    clock: Clock
    unscored: CountUnscored
    max_failed_share: float = DEFAULT_MAX_FAILED_SHARE

    async def complete(self, token: FencingToken, run: Run) -> None:
        """Closes a run of which everything is recorded, or that stopped early.

        Too many machinery failures make it a failed one.

        While its figures are computed the run has no slot, and a call returns how far they are. A run that is
        cancelled meanwhile is closed as cancelled, also where results has just closed it as completed.
        """
        # Stored before results is asked: a new leader goes on closing and dispatches nothing more.
        if not run.is_closing and not await self.runs.set_phase(token, run, CLOSING, is_closing=True):
            return
        report = await self.record.counts(run.run_id)
        error = await self._too_many_failures(run, report.counts)
        state = RunState.FAILED if error else RunState.COMPLETED
        unscored = await self.unscored.count(run)
        is_stopped = run.decision is not None
        closed = await self.record.close_run(run, state, allow_partial=is_stopped, unscored=unscored)
        if isinstance(closed, ClosingProgress):
            await self.runs.set_phase(token, run, f"{CLOSING} {closed.share:.0%}", is_closing=True)
        else:
            # Before the run is finished: a new leader that finds it closing repeats this.
            await self.shards.delete_shards(token, run)
            await self._finish(token, run, RunFinish(state, self.clock.now(), error, closed))

    async def reopen(self, token: FencingToken, run: Run) -> None:
        """Continues a run that could not be closed because outcomes are missing."""
        await self.runs.set_phase(token, run, "")

    async def fail(self, token: FencingToken, run: Run, error: RunError) -> None:
        """Fails a run with what it has; `CloseFinishedRun` sums that up."""
        await self._finish(token, run, RunFinish(RunState.FAILED, self.clock.now(), error))

    async def _finish(self, token: FencingToken, run: Run, finish: RunFinish) -> None:
        # False: the run was cancelled meanwhile, and its user has the last word.
        if await self.runs.finish(token, run, finish):
            if finish.counts is not None:
                count_closed(replace(run, error=finish.error), finish.state, finish.counts)
            await self.controls.announce(replace(run, state=finish.state))

    async def _too_many_failures(self, run: Run, counts: RunCounts) -> RunError | None:
        # A run that stopped early is judged by what it has asked.
        total = run.total if run.decision is None else counts.recorded
        if not counts.failed or counts.failed <= self.max_failed_share * total:
            return None
        main_class = max(counts.failures, key=lambda name: counts.failures[name], default="")
        example = await self.record.failure_example(run.run_id, main_class) if main_class else ""
        message = (
            f"{counts.failed} of {total} samples failed, more than {self.max_failed_share:.0%}; "
            f"most often by {main_class.replace('_', ' ') or 'unknown'}"
        )
        return RunError("TOO_MANY_FAILURES", f"{message}: {example}" if example else f"{message}.")
