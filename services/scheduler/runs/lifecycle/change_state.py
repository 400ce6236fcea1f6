"""Cancel, pause, resume, retry, delete: the row changes at once, then workers and the leader are notified."""

from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn

from proctor.values.names.user import Caller
from proctor.values.run import RunId, RunState
from services.common.clock import Clock
from services.common.errors import DomainError
from services.common.lifecycle import every
from services.common.requests.request_fields import check_owner
from services.common.structured_logs import get_logger
from services.scheduler.audit.audit_record import Author
from services.scheduler.runs.lifecycle.cost_limit import cost_of, spent
from services.scheduler.runs.lifecycle.errors import (
    CostLimitStays,
    RunAlreadyFinished,
    RunArchived,
    RunNotPausable,
    RunNotPaused,
    RunNotRetryable,
)
from services.scheduler.runs.lifecycle.ports import ArtifactDeletion, RecordDeletion, RunControls, RunStore
from services.scheduler.runs.lifecycle.run import Run, may_become

log = get_logger()

# The delay after an outage of results; `RunStore.deleted` bounds what one sweep asks.
SWEEP_SECONDS = 10.0
# Until then the call that deletes a run asks results itself.
SWEEP_AFTER = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class ChangeState:
    """Changes states; each call can be repeated, since an answer may be lost. Raises `BelongsToAnother`."""

    runs: RunStore
    controls: RunControls
    clock: Clock

    async def cancel(self, run_id: RunId, caller: Caller) -> Run:
        """Repeatable until the cancelled run is closed."""
        await self._check_owner(run_id, caller)
        cancelled = await self.runs.cancel(run_id, self._author(caller)) or await self.runs.get(run_id)
        # The store changed nothing where a repeated call finds the run cancelled: that is not an error.
        if cancelled.is_closed or cancelled.state is not RunState.CANCELLED:
            raise RunAlreadyFinished(run_id=run_id, state=cancelled.display_state)
        return await self._announced(cancelled)

    async def pause(self, run_id: RunId, caller: Caller) -> Run:
        await self._check_owner(run_id, caller)
        paused = await self.runs.pause(run_id, self._author(caller)) or await self.runs.get(run_id)
        if paused.state is not RunState.PAUSED:
            raise RunNotPausable(run_id=run_id, state=paused.display_state)
        return await self._announced(paused)

    async def resume(self, run_id: RunId, caller: Caller) -> Run:
        """Refused once the run is pending again."""
        await self._check_owner(run_id, caller)
        pending = await self.runs.resume(run_id, self._author(caller))
        if pending is None:
            raise RunNotPaused(run_id=run_id, state=(await self.runs.get(run_id)).state)
        return await self._announced(pending)

    async def retry(self, run_id: RunId, caller: Caller) -> Run:
        """Repeatable while the retry waits or runs."""
        _check_cost(await self._check_owner(run_id, caller))
        pending = await self.runs.requeue(run_id, self._author(caller))
        if pending is not None:
            return await self._announced(pending)
        run = await self.runs.get(run_id)
        if run.archive_state is not None:
            raise RunArchived(run_id=run_id)
        # A pending run of a later epoch was retried by an earlier call, so this one succeeds too.
        if run.epoch == 1 or run.state not in (RunState.PENDING, RunState.RUNNING):
            raise RunNotRetryable(run_id=run_id, state=run.state)
        return run

    async def _check_owner(self, run_id: RunId, caller: Caller) -> Run:
        run = await self.runs.get(run_id)
        check_owner(caller, run.user, f"Run {run_id}", run.order.project_id)
        return run

    def _author(self, caller: Caller) -> Author:
        return Author(caller.name, self.clock.now())

    async def _announced(self, run: Run) -> Run:
        await self.controls.announce(run)
        return run


def _check_cost(run: Run) -> None:
    """Refuse a run at its cost limit, which would stop at once: costs of earlier epochs count."""
    cost, most = cost_of(run, run.final_counts), run.order.max_cost
    is_at_limit = cost is not None and most is not None and cost >= most
    if is_at_limit and may_become(run.state, RunState.PENDING):
        raise CostLimitStays(run_id=run.run_id, spent=spent(run, cost or 0.0))


@dataclass(frozen=True, slots=True)
class DeleteRun:
    runs: RunStore
    record: RecordDeletion
    artifacts: ArtifactDeletion
    clock: Clock

    async def delete(self, run_id: RunId, caller: Caller) -> None:
        """Raises `BelongsToAnother` and what `RunStore.delete` raises. Once it returns, the run is gone.

        Its answers and artifacts are deleted afterwards, by sweeps of results and of the leader.
        """
        run = await self.runs.get(run_id)
        check_owner(caller, run.user, f"Run {run_id}", run.order.project_id)
        await self.runs.delete(run_id, Author(caller.name, self.clock.now()))
        # The user's call succeeds: if results is away now, the sweep asks it.
        try:
            await self.record.delete_run(run_id)
        except DomainError as error:
            log.info("record of a deleted run not deleted", run_id=run_id, error=str(error))

    async def lead(self) -> NoReturn:
        """Sweeps for ever, in the leader."""
        await every(SWEEP_SECONDS, self.sweep, name="delete rests of deleted runs")

    async def sweep(self) -> None:
        """Deletes what may be left of deleted runs. A run that fails goes behind the others."""
        for run_id in await self.runs.deleted(self.clock.now() - SWEEP_AFTER):
            try:
                await self.artifacts.delete(run_id)
                await self.record.delete_run(run_id)
            except DomainError as error:
                log.warning("rest of a deleted run not deleted", run_id=run_id, error=str(error))
                await self.runs.postpone_deleted(run_id, self.clock.now())
            else:
                # Last: a crash before repeats a deletion, which is harmless.
                await self.runs.delete_deletion(run_id)
