"""Deletes data sets, files and expired files, and collects unreferenced objects."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn, Protocol

from proctor.values.names.user import Caller
from services.common.clock import Clock
from services.common.errors import ObjectStoreUnavailable
from services.common.lifecycle import every
from services.common.requests.request_fields import check_owner
from services.common.structured_logs import get_logger
from services.scheduler.audit.audit_record import Author
from services.scheduler.uploads.dataset import DatasetId
from services.scheduler.uploads.errors import FileInUse, FileInUseByRun, FileNotFound
from services.scheduler.uploads.ports import ObjectStore
from services.scheduler.uploads.postgres import PostgresDatasets, PostgresFiles
from services.scheduler.uploads.stored_file import FileId

# Their objects are deleted one after the other.
EXPIRED_AT_A_TIME = 100
# How late an expired file is gone; readers refuse it from its second on.
EXPIRY_SECONDS = 60.0
# A sweep lists all prefixes of the store.
COLLECT_SECONDS = 600.0

log = get_logger()


def prefix_of(dataset_id: DatasetId) -> str:
    return f"datasets/{dataset_id}"


def delete_objects(objects: ObjectStore, prefix: str) -> None:
    objects.delete(list(objects.keys(prefix)))


def try_to_delete_objects(objects: ObjectStore, prefix: str) -> None:
    """If this fails, the objects are collected later, since the prefix stays unreferenced."""
    with suppress(ObjectStoreUnavailable):
        delete_objects(objects, prefix)


class Backups(Protocol):
    """Says whether a backup copies the objects that its rows refer to."""

    async def is_backup_running(self) -> bool: ...


async def delete_unreferenced(objects: ObjectStore, prefix: str, backups: Backups) -> None:
    """Called once the prefix is unreferenced in Postgres. While a backup runs, the sweep is left to do it.

    A backup that begins after this check has no row that refers to them.
    """
    if not await backups.is_backup_running():
        await asyncio.to_thread(try_to_delete_objects, objects, prefix)


@dataclass(frozen=True, slots=True)
class DeleteDataset:
    """Deletes a data set that no run uses, and its rows unless another data set or file shares them."""

    datasets: PostgresDatasets
    objects: ObjectStore
    clock: Clock

    async def delete(self, dataset_id: DatasetId, caller: Caller) -> None:
        """Objects that cannot be deleted now are collected later. Raises `BelongsToAnother`."""
        dataset = await self.datasets.get(dataset_id)
        check_owner(caller, dataset.user, f"Data set {dataset_id}", dataset.project_id)
        content = await self.datasets.delete(dataset_id, Author(caller.name, self.clock.now()))
        if content is not None:
            await delete_unreferenced(self.objects, content.prefix, self.datasets)


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """Deletes a file, and its rows unless another file or data set shares them."""

    files: PostgresFiles
    objects: ObjectStore
    clock: Clock

    async def delete(self, file_id: FileId, caller: Caller) -> None:
        """Objects that cannot be deleted now are collected later. Raises `BelongsToAnother`."""
        file = await self.files.get(file_id)
        check_owner(caller, file.user, f"File {file_id}", file.project_id)
        await self._delete(file_id, Author(caller.name, self.clock.now()))

    async def _delete(self, file_id: FileId, author: Author | None) -> None:
        for prefix in await self.files.delete(file_id, author):
            await delete_unreferenced(self.objects, prefix, self.files)

    async def lead(self) -> NoReturn:
        await every(EXPIRY_SECONDS, self.delete_expired, name="delete expired files")

    async def delete_expired(self) -> None:
        """Files in use stay until they are no longer used."""
        now, kept = self.clock.now(), 0
        while expired := await self.files.expired(now, EXPIRED_AT_A_TIME, kept):
            for file_id in expired:
                try:
                    await self._delete(file_id, None)
                except FileNotFound:
                    pass  # deleted by its user just now
                except (FileInUse, FileInUseByRun):
                    kept += 1


@dataclass(frozen=True, slots=True)
class CollectUnreferencedObjects:
    """Garbage collection: deletes objects that no data set and no file refers to, as after a killed upload.

    Only prefixes registered in this Postgres are searched: other objects may belong to others. Prefixes
    younger than `upload_seconds` may belong to an upload or a batch that is still running.
    """

    datasets: PostgresDatasets
    objects: ObjectStore
    clock: Clock
    upload_seconds: float

    async def lead(self) -> NoReturn:
        await every(COLLECT_SECONDS, self.collect, name="collect unreferenced objects")

    async def collect(self) -> None:
        if await self.datasets.is_backup_running():
            return
        age = timedelta(seconds=self.upload_seconds + COLLECT_SECONDS)
        for prefix in await self.datasets.unreferenced_prefixes(self.clock.now() - age):
            try:
                await asyncio.to_thread(delete_objects, self.objects, prefix)
            except ObjectStoreUnavailable as error:
                # It stays registered for the next sweep, and holds up none of those behind it.
                log.warning("unreferenced objects not deleted", prefix=prefix, problem=error.message)
            else:
                await self.datasets.delete_unreferenced_prefix(prefix)
