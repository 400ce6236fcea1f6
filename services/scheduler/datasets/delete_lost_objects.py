"""Sweeps the object store: what nothing has any more goes, as after a kill in the middle of an upload."""

import asyncio
from datetime import timedelta
from typing import NoReturn

from services.common.clock import Clock
from services.common.lifecycle import every
from services.scheduler.datasets.delete_objects import delete_objects
from services.scheduler.datasets.ports import DatasetStore, ObjectStore

SWEEP_SECONDS = 600.0


class DeleteLostObjects:
    """Only under prefixes that were begun in this Postgres: all else in the store is of others.

    No upload takes longer than `upload_seconds`, and no writing of what a batch has to say: what is younger
    may be of one that goes on.
    """

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
        for prefix in await self._datasets.loose_prefixes(self._clock.now() - self._age):
            await asyncio.to_thread(delete_objects, self._objects, prefix)
            await self._datasets.forget_loose_prefix(prefix)
