"""Checks a file for batches in one pass: its bytes are stored, with its faults or with its rows."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from services.scheduler.uploads.checking.check_file import CheckedFile, CheckFile, LineRules, SizeLimits
from services.scheduler.uploads.checking.text_readers import read_jsonl
from services.scheduler.uploads.dataset import DatasetFormat, DatasetHeader
from services.scheduler.uploads.errors import DatasetTooLarge, FileTooLarge
from services.scheduler.uploads.ports import Objects
from services.scheduler.uploads.quotas.storage_use import StorageQuota, StorageUse
from services.scheduler.uploads.storage.store_parts import StoreBytes
from services.scheduler.uploads.stored_file import FileHeader, FileId, bytes_prefix, rows_prefix


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Bytes of a file, also decompressed, and its lines."""

    bytes: int
    lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFileCheck:
    """The check of one file, in plain values."""

    header: FileHeader
    file_id: FileId
    quota: StorageQuota
    limits: BatchLimits


@dataclass(frozen=True, slots=True)
class CheckedBatchFile:
    """All bytes are stored, and the rows if there are no faults."""

    size_bytes: int
    rows: CheckedFile


@dataclass(frozen=True, slots=True)
class CheckBatchFile:
    """Memory use is bounded. Runs in a process."""

    objects: Objects

    def check(self, check: BatchFileCheck, chunks: Iterable[bytes]) -> CheckedBatchFile:
        """Raises `FileTooLarge` or `StorageQuotaExceeded`."""
        parts = StoreBytes(self.objects, bytes_prefix(check.file_id))
        stored = _stored(check, _within(check.quota, chunks), parts)
        checked = self._checked(check, stored)
        for _ in stored:
            # The rest after a fault that ends the check is stored as well.
            pass
        parts.end()
        return CheckedBatchFile(parts.size, checked)

    def _checked(self, check: BatchFileCheck, chunks: Iterable[bytes]) -> CheckedFile:
        header, limits = check.header, check.limits
        # Lines are counted by the rules: one too many is a fault, and the file is kept.
        sizes = SizeLimits(uploaded_bytes=limits.bytes, decompressed_bytes=limits.bytes, rows=sys.maxsize)
        checking = CheckFile(
            readers={DatasetFormat.JSONL: read_jsonl},
            objects=self.objects,
            limits=sizes,
            rules=LineRules(is_batch_only=True, maximum=limits.lines),
        )
        as_dataset = DatasetHeader(header.name, header.user, DatasetFormat.JSONL)
        try:
            return checking.check(as_dataset, chunks, rows_prefix(check.file_id), check.quota)
        except DatasetTooLarge as error:
            raise FileTooLarge(name=header.name, limit=limits.bytes, when=" decompressed") from error


def _stored(check: BatchFileCheck, chunks: Iterable[bytes], parts: StoreBytes) -> Iterator[bytes]:
    limit = check.limits.bytes
    for chunk in chunks:
        if parts.size + len(chunk) > limit:
            raise FileTooLarge(name=check.header.name, limit=limit, when="")
        parts.add(chunk)
        yield chunk


def _within(quota: StorageQuota, chunks: Iterable[bytes]) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        quota.check(StorageUse(bytes=size))
        yield chunk
