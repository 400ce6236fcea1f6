"""Shows data sets: one, a page of them, some rows."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from services.scheduler.datasets.dataset import Dataset, DatasetCursor, DatasetId, DatasetPage
from services.scheduler.datasets.dataset_row import DatasetRow
from services.scheduler.datasets.load_rows import LoadRows
from services.scheduler.datasets.ports import DatasetStore

MAX_SHOWN_BYTES = 1024 * 1024


@dataclass(frozen=True)
class ShowDataset:
    datasets: DatasetStore
    loading: LoadRows

    async def get(self, dataset_id: DatasetId) -> Dataset:
        return await self.datasets.get(dataset_id)

    async def page(self, size: int, after: DatasetCursor | None) -> DatasetPage:
        return await self.datasets.page(size, after)

    async def rows(self, dataset_id: DatasetId, first_row: int, count: int) -> Sequence[DatasetRow]:
        """Fewer where they are heavy, but at least one where there is one."""
        dataset = await self.datasets.get(dataset_id)
        return await asyncio.to_thread(self._rows, dataset, first_row, count)

    def _rows(self, dataset: Dataset, first_row: int, count: int) -> list[DatasetRow]:
        shown: list[DatasetRow] = []
        size = 0
        for row in self.loading.rows_from(dataset.content, first_row):
            size += row.size_bytes
            if shown and size > MAX_SHOWN_BYTES:
                break
            shown.append(row)
            if len(shown) == count:
                break
        return shown
