"""Reads an uploaded file in one pass: keeps it byte by byte, and its rows where no line is faulty."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from services.scheduler.datasets.check_file import CheckedFile, CheckFile
from services.scheduler.datasets.dataset import DatasetContent, DatasetFormat, DatasetHeader
from services.scheduler.datasets.dataset_errors import DatasetTooLarge
from services.scheduler.datasets.ports import ObjectStore
from services.scheduler.files.errors import FileTooLarge
from services.scheduler.files.store_bytes import StoreBytes
from services.scheduler.files.stored_file import FileFaults, FileHeader, FileId, bytes_prefix, rows_prefix


@dataclass(frozen=True, slots=True)
class CheckedBatchFile:
    """`content` only where there is no fault; then the rows are stored too."""

    size_bytes: int
    content: DatasetContent | None
    faults: FileFaults


@dataclass(frozen=True)
class CheckBatchFile:
    """Takes as much memory for a long file as for a short one. Runs in a thread of its own."""

    checking: CheckFile
    objects: ObjectStore
    max_bytes: int

    def check(self, header: FileHeader, chunks: Iterable[bytes], file_id: FileId) -> CheckedBatchFile:
        """Raises `FileTooLarge`."""
        parts = StoreBytes(self.objects, bytes_prefix(file_id))
        kept = self._kept(header.name, chunks, parts)
        checked = self._checked(header, kept, file_id)
        for _ in kept:
            # What lies behind a fault that ends the check is kept as well.
            pass
        parts.end()
        faults = FileFaults(checked.faults, checked.fault_count)
        return CheckedBatchFile(parts.size, _content_of(checked, file_id), faults)

    def _kept(self, name: str, chunks: Iterable[bytes], parts: StoreBytes) -> Iterator[bytes]:
        for chunk in chunks:
            if parts.size + len(chunk) > self.max_bytes:
                raise FileTooLarge(name=name, limit=self.max_bytes, when="")
            parts.add(chunk)
            yield chunk

    def _checked(self, header: FileHeader, chunks: Iterable[bytes], file_id: FileId) -> CheckedFile:
        told = DatasetHeader(header.name, header.user, DatasetFormat.JSONL)
        try:
            return self.checking.check(told, chunks, rows_prefix(file_id))
        except DatasetTooLarge as error:
            raise FileTooLarge(name=header.name, limit=self.max_bytes, when=" unpacked") from error


def _content_of(checked: CheckedFile, file_id: FileId) -> DatasetContent | None:
    if checked.facts is None:
        return None
    return DatasetContent(
        checked.digest, checked.format, checked.size_bytes, checked.facts, rows_prefix(file_id)
    )
