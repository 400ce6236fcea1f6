"""Adds a data set: the upload is checked as it arrives, and stored completely or not at all."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from proctor.values.row_fields import MAX_UPLOAD_NAME_CHARACTERS
from proctor.values.uploads.column_mapping import mapping_problem
from services.common.checked_fields import refuse
from services.common.clock import Clock
from services.common.errors import InvalidParameter
from services.common.requests.request_fields import hidden_problem, project_problem, user_problem
from services.scheduler.uploads.checking.check_file import CheckedFile, DatasetCheck, SizeLimits
from services.scheduler.uploads.concurrent_uploads import Uploads
from services.scheduler.uploads.dataset import (
    Dataset,
    DatasetContent,
    DatasetHeader,
    DatasetId,
    RowFacts,
)
from services.scheduler.uploads.delete_uploads import prefix_of, try_to_delete_objects
from services.scheduler.uploads.errors import StorageQuotaExceeded, UploadRequestTaken
from services.scheduler.uploads.faults import DatasetFault
from services.scheduler.uploads.ports import CheckJob, ObjectStore
from services.scheduler.uploads.postgres import PostgresDatasets
from services.scheduler.uploads.quotas.ports import StorageSource
from services.scheduler.uploads.quotas.storage_use import MIN_FILE, StorageQuota


@dataclass(frozen=True, slots=True)
class AddedDataset:
    """`dataset` is None if the file was refused; then there are faults."""

    dataset: Dataset | None
    faults: Sequence[DatasetFault] = ()
    fault_count: int = 0


@dataclass(frozen=True, slots=True)
class AddDataset:
    """Checks each upload while it arrives. A process runs the module `program` for each `DatasetCheck`."""

    program: str
    limits: SizeLimits
    datasets: PostgresDatasets
    objects: ObjectStore
    clock: Clock
    uploads: Uploads
    storage: StorageSource

    async def add(
        self, dataset_id: DatasetId, header: DatasetHeader, chunks: AsyncIterator[bytes]
    ) -> AddedDataset:
        """May return before the last chunk was read.

        Raises `UploadRequestTaken`, `TooManyUploads`, `StorageQuotaExceeded`.
        """
        check_header(header.name, header.user, header.project_id)
        refuse(mapping_problem(header.mapping), of="header")
        known = None
        if header.request_id:
            known = await self.datasets.find_by_request(header.request_id, header.user)
        if known is not None:
            check_same_name(known.name, header.name, header.request_id)
            if header.digest == known.content.digest:
                return AddedDataset(known)
        with self.uploads.slot(header.user):
            quota = await self.storage.quota(header.user, header.project_id)
            quota.check(MIN_FILE)
            await self.datasets.register_prefix(prefix_of(dataset_id))
            checked = await self._check(dataset_id, header, chunks, quota)
            if checked.facts is not None:
                return await self._store(dataset_id, header, checked, checked.facts)
            if known is not None:
                # A stored file has no faults, so this is another file.
                raise UploadRequestTaken(request_id=header.request_id, name=known.name)
            return AddedDataset(None, checked.faults, checked.fault_count)

    async def _check(
        self, dataset_id: DatasetId, header: DatasetHeader, chunks: AsyncIterator[bytes], quota: StorageQuota
    ) -> CheckedFile:
        """Deletes the stored objects if the file is refused or the upload fails."""
        prefix, checked = prefix_of(dataset_id), None
        try:
            check = DatasetCheck(header=header, prefix=prefix, quota=quota, limits=self.limits)
            job = CheckJob(self.program, check, CheckedFile)
            checked = await self.uploads.run_check(chunks, job, self.objects, (prefix,))
            return checked
        finally:
            if checked is None or checked.facts is None:
                await asyncio.to_thread(try_to_delete_objects, self.objects, prefix)

    async def _store(
        self, dataset_id: DatasetId, header: DatasetHeader, checked: CheckedFile, facts: RowFacts
    ) -> AddedDataset:
        prefix = prefix_of(dataset_id)
        content = content_of(checked, facts, prefix)
        dataset = Dataset(dataset_id, header.name, header.user, self.clock.now(), content, header.project_id)
        try:
            # If this fails, the data set may be stored or not; if not, its objects are collected later.
            stored = await self.datasets.add(dataset, header.request_id)
        except StorageQuotaExceeded:
            await asyncio.to_thread(try_to_delete_objects, self.objects, prefix)
            raise
        if stored.content.prefix != prefix:
            await asyncio.to_thread(try_to_delete_objects, self.objects, prefix)
        check_same_name(stored.name, header.name, header.request_id)
        if (stored.content.digest, stored.content.format) != (checked.digest, checked.format):
            raise UploadRequestTaken(request_id=header.request_id, name=stored.name)
        return AddedDataset(stored)


def content_of(checked: CheckedFile, facts: RowFacts, prefix: str) -> DatasetContent:
    return DatasetContent(
        digest=checked.digest,
        format=checked.format,
        size_bytes=checked.size_bytes,
        facts=facts,
        prefix=prefix,
        stored_bytes=checked.stored_bytes,
    )


def check_same_name(stored: str, name: str, request_id: str) -> None:
    """Raises `UploadRequestTaken`."""
    if stored != name:
        raise UploadRequestTaken(request_id=request_id, name=stored)


def check_header(name: str, user: str, project_id: int = 0) -> None:
    """Checks the header of an upload. Raises `InvalidParameter`."""
    refuse(hidden_problem("name", name) or user_problem(user) or project_problem(project_id))
    if not 0 < len(name) <= MAX_UPLOAD_NAME_CHARACTERS:
        sentence = f"name has {len(name)} characters, but must have 1 to {MAX_UPLOAD_NAME_CHARACTERS}."
        raise InvalidParameter(field="header.name", sentence=sentence)
