"""Adds a file for batches: stored byte by byte, with its faults or with its rows, or not at all."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from services.common.clock import Clock
from services.common.errors import InvalidParameter
from services.scheduler.uploads.add_dataset import check_header, check_same_name, content_of
from services.scheduler.uploads.checking.check_file import CheckedFile, CheckFile
from services.scheduler.uploads.concurrent_uploads import Uploads
from services.scheduler.uploads.dataset import DatasetContent, DatasetFormat, DatasetHeader
from services.scheduler.uploads.delete_uploads import try_to_delete_objects
from services.scheduler.uploads.errors import (
    DatasetTooLarge,
    FileTooLarge,
    StorageQuotaExceeded,
    UploadRequestTaken,
)
from services.scheduler.uploads.ports import FileStore, ObjectStore
from services.scheduler.uploads.quotas.ports import StorageSource
from services.scheduler.uploads.quotas.storage_use import MIN_FILE, NO_QUOTA, StorageQuota, StorageUse
from services.scheduler.uploads.storage.store_parts import StoreBytes
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
class CheckedBatchFile:
    """`content` is None if there are faults; else the rows are stored too."""

    size_bytes: int
    content: DatasetContent | None
    faults: FileFaults


@dataclass(frozen=True, slots=True)
class CheckBatchFile:
    """Checks a file in one pass and stores its bytes. Memory use is bounded. Runs in a process."""

    check_file: CheckFile
    objects: ObjectStore
    max_bytes: int

    def check(
        self, header: FileHeader, chunks: Iterable[bytes], file_id: FileId, quota: StorageQuota = NO_QUOTA
    ) -> CheckedBatchFile:
        """Raises `FileTooLarge` or `StorageQuotaExceeded`."""
        parts = StoreBytes(self.objects, bytes_prefix(file_id))
        stored = self._stored(header.name, _within(quota, chunks), parts)
        checked = self._checked(header, stored, file_id, quota)
        for _ in stored:
            # The rest after a fault that ends the check is stored as well.
            pass
        parts.end()
        faults = FileFaults(checked.faults, checked.fault_count)
        return CheckedBatchFile(parts.size, _content_of(checked, file_id), faults)

    def _stored(self, name: str, chunks: Iterable[bytes], parts: StoreBytes) -> Iterator[bytes]:
        for chunk in chunks:
            if parts.size + len(chunk) > self.max_bytes:
                raise FileTooLarge(name=name, limit=self.max_bytes, when="")
            parts.add(chunk)
            yield chunk

    def _checked(
        self, header: FileHeader, chunks: Iterable[bytes], file_id: FileId, quota: StorageQuota
    ) -> CheckedFile:
        as_dataset = DatasetHeader(header.name, header.user, DatasetFormat.JSONL)
        try:
            return self.check_file.check(as_dataset, chunks, rows_prefix(file_id), quota)
        except DatasetTooLarge as error:
            raise FileTooLarge(name=header.name, limit=self.max_bytes, when=" decompressed") from error


def _within(quota: StorageQuota, chunks: Iterable[bytes]) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        quota.check(StorageUse(bytes=size))
        yield chunk


def _content_of(checked: CheckedFile, file_id: FileId) -> DatasetContent | None:
    return content_of(checked, checked.facts, rows_prefix(file_id)) if checked.facts else None


@dataclass(frozen=True, slots=True)
class AddFile:
    check_file: CheckBatchFile
    files: FileStore
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
            check = partial(self.check_file.check, header, file_id=file_id, quota=quota)
            checked = await self.uploads.run_check(chunks, check, self.objects, unused)
            unused = () if checked.content else (rows_prefix(file_id),)
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
            content=checked.content,
            faults=checked.faults,
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


def _fingerprint(file: StoredFile) -> tuple[int, str, FileFaults]:
    """Compares the bytes of two files. A file with faults has no digest, but its faults."""
    return file.size_bytes, file.content.digest if file.content else "", file.faults


def _check_header(header: FileHeader) -> None:
    check_header(header.name, header.user, header.project_id)
    sentence = expiry_problem("expires_after_seconds", header.expires_after_seconds)
    if sentence:
        raise InvalidParameter(field="header.expires_after_seconds", sentence=sentence)
