"""Shows and cancels batches."""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.run import Caller, RunCounts
from services.common.requests.request_fields import check_owner
from services.scheduler.batches.errors import BatchAlreadyFinished
from services.scheduler.batches.ports import BatchStore
from services.scheduler.batches.stored_batch import Batch, BatchId, BatchState, state_of
from services.scheduler.runs.lifecycle.change_state import ChangeState
from services.scheduler.runs.lifecycle.errors import RunAlreadyFinished
from services.scheduler.runs.reads.count_runs import CountRuns


@dataclass(frozen=True, slots=True)
class BatchView:
    """`counts` None: nothing is recorded, or it is not known at the moment."""

    batch: Batch
    counts: RunCounts | None = None


@dataclass(frozen=True, slots=True)
class BatchViews:
    """Newest first."""

    batches: Sequence[BatchView]
    has_more: bool


@dataclass(frozen=True, slots=True)
class ShowBatch:
    batches: BatchStore
    count_runs: CountRuns

    async def show(self, batch_id: BatchId) -> BatchView:
        return await self.show_stored(await self.batches.get(batch_id))

    async def show_stored(self, batch: Batch) -> BatchView:
        return BatchView(batch, await self.count_runs.count(batch.run) if batch.run else None)

    async def list_page(self, size: int, after: BatchId | None) -> BatchViews:
        # One more than is shown: then there is a next page.
        found = await self.batches.page(size + 1, after)
        counts = await self.count_runs.count_all([batch.run for batch in found[:size] if batch.run])
        shown = [
            BatchView(batch, counts.get(batch.run.run_id) if batch.run else None) for batch in found[:size]
        ]
        return BatchViews(shown, len(found) > size)


@dataclass(frozen=True, slots=True)
class CancelBatch:
    batches: BatchStore
    runs: ChangeState

    async def cancel(self, batch_id: BatchId, caller: Caller) -> Batch:
        """Cancels the run of a batch and returns the batch. Can be repeated until it is cancelled.

        Raises `BatchNotFound`, `BelongsToAnother` or `BatchAlreadyFinished`.
        """
        batch = await self.batches.get(batch_id)
        check_owner(caller, batch.user, f"Batch {batch_id}")
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
