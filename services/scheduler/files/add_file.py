"""Takes a file for batches: kept byte by byte, with its faults or with its rows, or not at all."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from services.common.clock import Clock
from services.scheduler.datasets.add_dataset import check_header
from services.scheduler.datasets.dataset_errors import UploadRequestTaken
from services.scheduler.datasets.delete_objects import try_to_delete_objects
from services.scheduler.datasets.ports import ObjectStore
from services.scheduler.datasets.uploads import Uploads
from services.scheduler.errors import InvalidParameter
from services.scheduler.files.check_batch_file import CheckBatchFile, CheckedBatchFile
from services.scheduler.files.ports import FileStore
from services.scheduler.files.stored_file import (
    FileFaults,
    FileHeader,
    FileId,
    FilePurpose,
    StoredFile,
    bytes_prefix,
    expiry_problem,
    rows_prefix,
)


@dataclass(frozen=True)
class AddFile:
    checking: CheckBatchFile
    files: FileStore
    objects: ObjectStore
    clock: Clock
    uploads: Uploads

    async def add(self, file_id: FileId, header: FileHeader, chunks: AsyncIterator[bytes]) -> StoredFile:
        """May be over before the last chunk was taken."""
        _check(header)
        if header.request_id:
            known = await self.files.ordered(header.request_id, header.user)
            if known is not None:
                _check_name(known, header)
        with self.uploads.place():
            await self.files.begin((bytes_prefix(file_id), rows_prefix(file_id)))
            checked = await self._checked_or_gone(file_id, header, chunks)
            return await self._kept(file_id, header, checked)

    async def _checked_or_gone(
        self, file_id: FileId, header: FileHeader, chunks: AsyncIterator[bytes]
    ) -> CheckedBatchFile:
        left: Sequence[str] = (bytes_prefix(file_id), rows_prefix(file_id))
        try:
            checked = await self.uploads.checked(
                chunks, lambda given: self.checking.check(header, given, file_id)
            )
            left = () if checked.content else (rows_prefix(file_id),)
            return checked
        finally:
            await self._delete(left)

    async def _kept(self, file_id: FileId, header: FileHeader, checked: CheckedBatchFile) -> StoredFile:
        now, lasts = self.clock.now(), header.expires_after_seconds
        file = StoredFile(
            file_id=file_id,
            name=header.name,
            user=header.user,
            purpose=FilePurpose.BATCH,
            size_bytes=checked.size_bytes,
            created_at=now,
            prefix=bytes_prefix(file_id),
            expires_at=None if lasts is None else now + timedelta(seconds=lasts),
            content=checked.content,
            faults=checked.faults,
        )
        # Where this fails it may have been stored all the same; if not, its prefixes are loose and are swept.
        stored = await self.files.add(file, header.request_id)
        if stored.file_id != file_id:
            await self._delete((file.prefix, rows_prefix(file_id)))
        elif file.content and stored.content and stored.content.prefix != file.content.prefix:
            await self._delete((file.content.prefix,))
        _check_name(stored, header)
        if _what_is_known_of(stored) != _what_is_known_of(file):
            raise UploadRequestTaken(request_id=header.request_id, name=stored.name)
        return stored

    async def _delete(self, prefixes: Sequence[str]) -> None:
        for prefix in prefixes:
            await asyncio.to_thread(try_to_delete_objects, self.objects, prefix)


def _check_name(stored: StoredFile, header: FileHeader) -> None:
    """Raises `UploadRequestTaken`."""
    if stored.name != header.name:
        raise UploadRequestTaken(request_id=header.request_id, name=stored.name)


def _what_is_known_of(file: StoredFile) -> tuple[int, str, FileFaults]:
    """Of its bytes. No digest is kept of those with faults, but what is wrong with them."""
    return file.size_bytes, file.content.digest if file.content else "", file.faults


def _check(header: FileHeader) -> None:
    check_header(header.name, header.user)
    sentence = expiry_problem("expires_after_seconds", header.expires_after_seconds)
    if sentence:
        raise InvalidParameter(field="header.expires_after_seconds", sentence=sentence)
