"""Shows batches."""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.run import RunCounts
from services.scheduler.batches.postgres import PostgresBatches
from services.scheduler.batches.stored_batch import Batch, BatchId
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
    batches: PostgresBatches
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
