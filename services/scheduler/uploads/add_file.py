"""Adds a file for batches: stored byte by byte, with its faults or with its rows, or not at all."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from services.common.clock import Clock
from services.common.errors import InvalidParameter
from services.scheduler.uploads.add_dataset import check_header, check_same_name, content_of
from services.scheduler.uploads.checking.check_batch_file import (
    BatchFileCheck,
    BatchLimits,
    CheckedBatchFile,
)
from services.scheduler.uploads.checking.check_file import CheckedFile
from services.scheduler.uploads.concurrent_uploads import Uploads
from services.scheduler.uploads.dataset import DatasetContent
from services.scheduler.uploads.delete_uploads import try_to_delete_objects
from services.scheduler.uploads.errors import StorageQuotaExceeded, UploadRequestTaken
from services.scheduler.uploads.ports import CheckJob, ObjectStore
from services.scheduler.uploads.postgres import PostgresFiles
from services.scheduler.uploads.quotas.ports import StorageSource
from services.scheduler.uploads.quotas.storage_use import MIN_FILE, StorageQuota
from services.scheduler.uploads.stored_file import (
    FileFaults,
    FileHeader,
    FileId,
    FilePurpose,
    StoredFile,
    bytes_prefix,
    expiry_problem,
    rows_prefix,
)


@dataclass(frozen=True, slots=True)
class AddFile:
    """`program` is the module that does a `BatchFileCheck` in a process."""

    program: str
    limits: BatchLimits
    files: PostgresFiles
    objects: ObjectStore
    clock: Clock
    uploads: Uploads
    storage: StorageSource

    async def add(self, file_id: FileId, header: FileHeader, chunks: AsyncIterator[bytes]) -> StoredFile:
        """May return before the last chunk was read.

        Raises `UploadRequestTaken`, `TooManyUploads`, `StorageQuotaExceeded`.
        """
        _check_header(header)
        if header.request_id:
            known = await self.files.find_by_request(header.request_id, header.user)
            if known is not None:
                check_same_name(known.name, header.name, header.request_id)
        with self.uploads.slot(header.user):
            quota = await self.storage.quota(header.user, header.project_id)
            # A user without room is refused before a byte is read.
            quota.check(MIN_FILE)
            # Before the first object: a crash leaves a note by which they are collected.
            await self.files.register_prefixes((bytes_prefix(file_id), rows_prefix(file_id)))
            checked = await self._check(file_id, header, chunks, quota)
            return await self._store(file_id, header, checked)

    async def _check(
        self, file_id: FileId, header: FileHeader, chunks: AsyncIterator[bytes], quota: StorageQuota
    ) -> CheckedBatchFile:
        """Deletes the stored rows if there are faults, and all objects if the upload fails."""
        unused: Sequence[str] = (bytes_prefix(file_id), rows_prefix(file_id))
        try:
            check = BatchFileCheck(header=header, file_id=file_id, quota=quota, limits=self.limits)
            job = CheckJob(self.program, check, CheckedBatchFile)
            checked = await self.uploads.run_check(chunks, job, self.objects, unused)
            unused = () if checked.rows.facts else (rows_prefix(file_id),)
            return checked
        finally:
            await self._delete(unused)

    async def _store(self, file_id: FileId, header: FileHeader, checked: CheckedBatchFile) -> StoredFile:
        now, lifetime = self.clock.now(), header.expires_after_seconds
        file = StoredFile(
            file_id=file_id,
            name=header.name,
            user=header.user,
            purpose=FilePurpose.BATCH,
            size_bytes=checked.size_bytes,
            created_at=now,
            prefix=bytes_prefix(file_id),
            expires_at=None if lifetime is None else now + timedelta(seconds=lifetime),
            content=_content_of(checked.rows, file_id),
            faults=FileFaults(checked.rows.faults, checked.rows.fault_count),
            project_id=header.project_id,
        )
        try:
            # If this fails, the file may be stored or not; if not, its objects are collected later.
            stored = await self.files.add(file, header.request_id)
        except StorageQuotaExceeded:
            await self._delete((file.prefix, rows_prefix(file_id)))
            raise
        # An earlier call of this request has stored the file.
        if stored.file_id != file_id:
            await self._delete((file.prefix, rows_prefix(file_id)))
        # The same rows are stored already: those of this upload are one copy too many.
        elif file.content and stored.content and stored.content.prefix != file.content.prefix:
            await self._delete((file.content.prefix,))
        check_same_name(stored.name, header.name, header.request_id)
        if _fingerprint(stored) != _fingerprint(file):
            raise UploadRequestTaken(request_id=header.request_id, name=stored.name)
        return stored

    async def _delete(self, prefixes: Sequence[str]) -> None:
        for prefix in prefixes:
            await asyncio.to_thread(try_to_delete_objects, self.objects, prefix)


def _content_of(rows: CheckedFile, file_id: FileId) -> DatasetContent | None:
    """The process reads a hostile file: where it stored is not its to say."""
    return content_of(rows, rows.facts, rows_prefix(file_id)) if rows.facts else None


def _fingerprint(file: StoredFile) -> tuple[int, str, FileFaults]:
    """Compares the bytes of two files. A file with faults has no digest, but its faults."""
    return file.size_bytes, file.content.digest if file.content else "", file.faults


def _check_header(header: FileHeader) -> None:
    check_header(header.name, header.user, header.project_id)
    sentence = expiry_problem("expires_after_seconds", header.expires_after_seconds)
    if sentence:
        raise InvalidParameter(field="header.expires_after_seconds", sentence=sentence)
