"""Removes a data set that no run uses, and its rows where no other data set and no file shares them."""

import asyncio
from dataclasses import dataclass

from services.scheduler.datasets.dataset import DatasetId
from services.scheduler.datasets.delete_objects import try_to_delete_objects
from services.scheduler.datasets.ports import DatasetStore, ObjectStore


@dataclass(frozen=True)
class DeleteDataset:
    datasets: DatasetStore
    objects: ObjectStore

    async def delete(self, dataset_id: DatasetId) -> None:
        """Once its row is gone it is deleted: objects that cannot be removed now are swept later."""
        content = await self.datasets.delete(dataset_id)
        if content is not None:
            await asyncio.to_thread(try_to_delete_objects, self.objects, content.prefix)
