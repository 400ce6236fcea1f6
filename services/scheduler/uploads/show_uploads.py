"""Reads rows of data sets and bytes of files."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from services.common.clock import Clock
from services.common.errors import InvalidParameter, ObjectStoreUnavailable
from services.scheduler.uploads.dataset import Dataset, DatasetId, DatasetRow
from services.scheduler.uploads.errors import FileNotFound
from services.scheduler.uploads.ports import ObjectStore
from services.scheduler.uploads.postgres import PostgresDatasets, PostgresFiles
from services.scheduler.uploads.storage.store_parts import LoadRows, bytes_part_key, parts_from
from services.scheduler.uploads.stored_file import FileId, StoredFile

# A page of rows stays far below a message; the first row is shown in any case.
MAX_SHOWN_BYTES = 1024 * 1024
CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ShowDataset:
    datasets: PostgresDatasets
    load_rows: LoadRows

    async def list_rows(self, dataset_id: DatasetId, first_doc_id: int, count: int) -> Sequence[DatasetRow]:
        """Returns up to `count` rows: fewer if they are large, but at least one if there is one."""
        dataset = await self.datasets.get(dataset_id)
        return await asyncio.to_thread(self._rows, dataset, first_doc_id, count)

    def _rows(self, dataset: Dataset, first_doc_id: int, count: int) -> list[DatasetRow]:
        shown: list[DatasetRow] = []
        size = 0
        for row in self.load_rows.rows_from(dataset.content, first_doc_id):
            size += row.size_bytes
            if shown and size > MAX_SHOWN_BYTES:
                break
            shown.append(row)
            if len(shown) == count:
                break
        return shown


@dataclass(frozen=True, slots=True)
class ShowFile:
    files: PostgresFiles
    objects: ObjectStore
    clock: Clock

    async def show(self, file_id: FileId) -> StoredFile:
        """Raises `FileNotFound`, also for a file that has expired."""
        file = await self.files.get(file_id)
        if file.has_expired(self.clock.now()):
            raise FileNotFound(file_id=file_id)
        return file

    async def read_chunks(self, file: StoredFile, first_byte: int) -> AsyncIterator[bytes]:
        """Yields the bytes, fetched part by part. Raises `FileNotFound` if the file was deleted meanwhile."""
        if not 0 <= first_byte <= file.size_bytes:
            sentence = f"first_byte is {first_byte}, but the file has {file.size_bytes} bytes."
            raise InvalidParameter(field="first_byte", sentence=sentence)
        for part, start, length in parts_from(file.size_bytes, first_byte):
            content = await self._fetched(file, part, start, length)
            for offset in range(0, length, CHUNK_BYTES):
                yield content[offset : offset + CHUNK_BYTES]

    async def _fetched(self, file: StoredFile, part: int, start: int, length: int) -> bytes:
        key = bytes_part_key(file.prefix, part)
        try:
            return await asyncio.to_thread(self.objects.get_range, key, start, length)
        except ObjectStoreUnavailable:
            await self.files.get(file.file_id)
            raise
