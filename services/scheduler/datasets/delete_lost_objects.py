"""Sweeps the object store: what no data set names goes, as after a kill in the middle of an upload."""

import asyncio
from datetime import datetime, timedelta
from typing import NoReturn

from services.common.clock import Clock
from services.common.lifecycle import every
from services.scheduler.datasets.delete_objects import PREFIX, delete_objects
from services.scheduler.datasets.ports import DatasetStore, ObjectStore

SWEEP_SECONDS = 600.0


class DeleteLostObjects:
    """No upload takes longer than `upload_seconds`: what is younger may be of one that goes on."""

    def __init__(
        self, datasets: DatasetStore, objects: ObjectStore, clock: Clock, upload_seconds: float
    ) -> None:
        self._datasets = datasets
        self._objects = objects
        self._clock = clock
        self._age = timedelta(seconds=upload_seconds + SWEEP_SECONDS)

    async def lead(self) -> NoReturn:
        await every(SWEEP_SECONDS, self.sweep, name="delete lost objects")

    async def sweep(self) -> None:
        old = await asyncio.to_thread(self._old_prefixes, self._clock.now() - self._age)
        for prefix in old - await self._datasets.named_among(old):
            await asyncio.to_thread(delete_objects, self._objects, prefix)

    def _old_prefixes(self, before: datetime) -> set[str]:
        latest: dict[str, datetime] = {}
        for stored in self._objects.objects(PREFIX):
            prefix = "/".join(stored.key.split("/")[:2])
            latest[prefix] = max(stored.stored_at, latest.get(prefix, stored.stored_at))
        return {prefix for prefix, stored_at in latest.items() if stored_at < before}
