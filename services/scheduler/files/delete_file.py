"""Removes a file, and its rows where no other file and no data set shares them."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from services.common.clock import Clock
from services.common.lifecycle import every
from services.scheduler.datasets.delete_objects import try_to_delete_objects
from services.scheduler.datasets.ports import ObjectStore
from services.scheduler.files.errors import FileInUse, FileInUseByRun, FileNotFound
from services.scheduler.files.ports import FileStore
from services.scheduler.files.stored_file import FileId

EXPIRED_AT_A_TIME = 100
SWEEP_SECONDS = 60.0


@dataclass(frozen=True)
class DeleteFile:
    files: FileStore
    objects: ObjectStore
    clock: Clock

    async def delete(self, file_id: FileId) -> None:
        """Once its row is gone it is deleted: objects that cannot be removed now are swept later."""
        for prefix in await self.files.delete(file_id):
            await asyncio.to_thread(try_to_delete_objects, self.objects, prefix)

    async def lead(self) -> NoReturn:
        await every(SWEEP_SECONDS, self.delete_expired, name="delete expired files")

    async def delete_expired(self) -> None:
        """One that is used stays until it is not."""
        for file_id in await self.files.expired(self.clock.now(), EXPIRED_AT_A_TIME):
            with suppress(FileNotFound, FileInUse, FileInUseByRun):
                await self.delete(file_id)
