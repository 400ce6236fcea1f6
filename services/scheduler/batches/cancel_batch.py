"""Cancels the run of a batch."""

from dataclasses import dataclass

from proctor.values.names.user import Caller
from services.common.errors import DomainError, ErrorKind
from services.common.requests.request_fields import check_owner
from services.scheduler.batches.postgres import PostgresBatches
from services.scheduler.batches.stored_batch import Batch, BatchId, BatchState, state_of
from services.scheduler.runs.lifecycle.change_state import ChangeState
from services.scheduler.runs.lifecycle.errors import RunAlreadyFinished


class BatchAlreadyFinished(DomainError, kind=ErrorKind.CONFLICT, reason="BATCH_ALREADY_FINISHED"):
    """The batch {batch_id} is {state}, so it can no longer be cancelled."""


@dataclass(frozen=True, slots=True)
class CancelBatch:
    batches: PostgresBatches
    runs: ChangeState

    async def cancel(self, batch_id: BatchId, caller: Caller) -> Batch:
        """Cancels the run of a batch and returns the batch. Can be repeated until it is cancelled.

        Raises `BatchNotFound`, `BelongsToAnother` or `BatchAlreadyFinished`.
        """
        batch = await self.batches.get(batch_id)
        check_owner(caller, batch.user, f"Batch {batch_id}", batch.project_id)
        state = state_of(batch)
        if batch.run is None or state.is_final or state is BatchState.FINALIZING:
            raise BatchAlreadyFinished(batch_id=batch_id, state=state)
        if state is BatchState.CANCELLING:
            return batch
        try:
            await self.runs.cancel(batch.run.run_id, caller)
        except RunAlreadyFinished:
            return await self._as_finished(batch_id)
        return await self.batches.get(batch_id)

    async def _as_finished(self, batch_id: BatchId) -> Batch:
        """The batch since it was looked at; a run that is closing has no state of its own yet."""
        batch = await self.batches.get(batch_id)
        state = state_of(batch)
        if state in (BatchState.CANCELLING, BatchState.CANCELLED):
            return batch
        known = state if state.is_final else BatchState.FINALIZING
        raise BatchAlreadyFinished(batch_id=batch_id, state=known)
