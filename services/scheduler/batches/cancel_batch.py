"""Cancelling a batch cancels its run: what was answered is written to its files, as is what was not."""

from dataclasses import dataclass

from services.scheduler.batches.errors import BatchAlreadyEnded
from services.scheduler.batches.ports import BatchStore
from services.scheduler.batches.state import BatchState, state_of
from services.scheduler.batches.stored_batch import Batch, BatchId
from services.scheduler.errors import RunAlreadyFinished
from services.scheduler.runs.cancel_run import CancelRun


@dataclass(frozen=True)
class CancelBatch:
    batches: BatchStore
    cancelling: CancelRun

    async def cancel(self, batch_id: BatchId) -> Batch:
        """Can be repeated until it is cancelled. Raises `BatchNotFound` or `BatchAlreadyEnded`."""
        batch = await self.batches.get(batch_id)
        state = state_of(batch)
        if batch.run is None or state.is_final or state is BatchState.FINALIZING:
            raise BatchAlreadyEnded(batch_id=batch_id, state=state)
        if state is BatchState.CANCELLING:
            return batch
        try:
            await self.cancelling.cancel(batch.run.run_id)
        except RunAlreadyFinished:
            return await self._as_ended(batch_id)
        return await self.batches.get(batch_id)

    async def _as_ended(self, batch_id: BatchId) -> Batch:
        """Since it was looked at; a run that is being summed up has no state of its own yet."""
        batch = await self.batches.get(batch_id)
        state = state_of(batch)
        if state in (BatchState.CANCELLING, BatchState.CANCELLED):
            return batch
        raise BatchAlreadyEnded(batch_id=batch_id, state=state if state.is_final else BatchState.FINALIZING)
