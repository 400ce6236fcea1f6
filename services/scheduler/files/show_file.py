"""Shows files: one, a page of them, or the bytes of one from any on."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from services.scheduler.datasets.dataset_errors import ObjectStoreUnavailable
from services.scheduler.datasets.ports import ObjectStore
from services.scheduler.errors import InvalidParameter
from services.scheduler.files.byte_parts import part_key, parts_from
from services.scheduler.files.ports import FileStore
from services.scheduler.files.stored_file import FileId, FileList, FilePage, StoredFile

CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True)
class ShowFile:
    files: FileStore
    objects: ObjectStore

    async def get(self, file_id: FileId) -> StoredFile:
        return await self.files.get(file_id)

    async def page(self, wanted: FileList) -> FilePage:
        return await self.files.page(wanted)

    async def chunks(self, file: StoredFile, first_byte: int) -> AsyncIterator[bytes]:
        """Fetched as the reader takes them, a part at a time. Raises `FileNotFound` where it has gone."""
        if not 0 <= first_byte <= file.size_bytes:
            sentence = f"first_byte is {first_byte}, but the file has {file.size_bytes} bytes."
            raise InvalidParameter(field="first_byte", sentence=sentence)
        for part, start, length in parts_from(file.size_bytes, first_byte):
            content = await self._fetched(file, part, start, length)
            for place in range(0, length, CHUNK_BYTES):
                yield content[place : place + CHUNK_BYTES]

    async def _fetched(self, file: StoredFile, part: int, start: int, length: int) -> bytes:
        key = part_key(file.prefix, part)
        try:
            return await asyncio.to_thread(self.objects.get_range, key, start, length)
        except ObjectStoreUnavailable:
            await self.files.get(file.file_id)
            raise
