"""Shows batches with how far their runs are: one, or a page of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.scheduler.batches.ports import BatchStore
from services.scheduler.batches.stored_batch import Batch, BatchId
from services.scheduler.runs.run_counts import RunCounts
from services.scheduler.runs.show_run import ShowRun


@dataclass(frozen=True, slots=True)
class ShownBatch:
    """`counts` None: nothing is recorded, or it is not known at the moment."""

    batch: Batch
    counts: RunCounts | None = None


@dataclass(frozen=True, slots=True)
class ShownPage:
    """Newest first."""

    batches: Sequence[ShownBatch]
    has_more: bool


@dataclass(frozen=True)
class ShowBatch:
    batches: BatchStore
    runs: ShowRun

    async def get(self, batch_id: BatchId) -> ShownBatch:
        return await self.shown(await self.batches.get(batch_id))

    async def shown(self, batch: Batch) -> ShownBatch:
        return ShownBatch(batch, await self.runs.counts(batch.run) if batch.run else None)

    async def page(self, size: int, after: BatchId | None) -> ShownPage:
        page = await self.batches.page(size, after)
        counts = await self.runs.counts_of_all([batch.run for batch in page.batches if batch.run])
        shown = [
            ShownBatch(batch, counts.get(batch.run.run_id) if batch.run else None) for batch in page.batches
        ]
        return ShownPage(shown, page.has_more)
