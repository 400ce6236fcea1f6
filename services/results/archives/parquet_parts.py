"""The files of archives in the object store: written, read back and selected from."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from services.common.errors import ObjectStoreUnavailable
from services.results.archives.archive import (
    MAX_ROWS,
    ArchivePart,
    OutcomeRow,
    Selection,
    folder_of,
    manifest,
    manifest_key,
    part_key,
)
from services.results.archives.errors import NoArchive, TooManyRows
from services.results.archives.parquet_outcomes import read_parquet, write_parquet
from services.results.archives.ports import ObjectStore, StoredRow

# Of one statement, with MAX_ROWS.
MAX_BYTES = 64 * 1024 * 1024
# Pages of one run are read one after the other.
CACHED_BYTES = 64 * 1024 * 1024
WHOLE = Selection()


@dataclass(slots=True)
class _Cache:
    """The files that were read last."""

    files: OrderedDict[tuple[str, bytes], bytes] = field(default_factory=OrderedDict)
    size_bytes: int = 0

    def get(self, key: str, digest: bytes) -> bytes | None:
        found = self.files.get((key, digest))
        if found is not None:
            self.files.move_to_end((key, digest))
        return found

    def keep(self, key: str, digest: bytes, content: bytes) -> None:
        if (key, digest) not in self.files:
            self.files[key, digest] = content
            self.size_bytes += len(content)
        while self.size_bytes > CACHED_BYTES:
            _, dropped = self.files.popitem(last=False)
            self.size_bytes -= len(dropped)


class ParquetParts:
    """`objects` None: there is no store for archives."""

    def __init__(self, objects: ObjectStore | None) -> None:
        self._objects = objects
        self._cache = _Cache()

    def check(self) -> None:
        if self._objects is None:
            raise NoArchive

    async def write(self, run_id: str, number: int, rows: Sequence[StoredRow]) -> tuple[int, bytes]:
        content = await asyncio.to_thread(write_parquet, run_id, rows)
        await asyncio.to_thread(self._store.put, part_key(run_id, number), [content])
        return len(content), hashlib.sha256(content).digest()

    async def read_part(self, run_id: str, part: ArchivePart) -> list[OutcomeRow]:
        content = await asyncio.to_thread(self._read, run_id, part)
        return await asyncio.to_thread(lambda: [row for row, _ in read_parquet(content, run_id, WHOLE)])

    async def write_manifest(self, run_id: str, epoch: int, parts: Sequence[ArchivePart]) -> None:
        content, key = manifest(run_id, epoch, parts), manifest_key(run_id)
        await asyncio.to_thread(self._store.put, key, [content])
        if await asyncio.to_thread(self._store.get, key) != content:
            raise _unlike(key)

    async def delete(self, run_id: str) -> None:
        if self._objects is None:
            return
        store = self._objects
        keys = await asyncio.to_thread(lambda: list(store.keys(folder_of(run_id))))
        await asyncio.to_thread(store.delete, keys)

    async def rows(self, run_id: str, parts: Sequence[ArchivePart], selection: Selection) -> list[OutcomeRow]:
        found: list[OutcomeRow] = []
        size_bytes = 0
        most_bytes = MAX_BYTES if selection.max_bytes is None else selection.max_bytes
        for part in parts:
            if not selection.may_have(part.first, part.last):
                continue
            content = await self._cached(run_id, part)
            for row, row_bytes in await asyncio.to_thread(_selected, content, run_id, selection):
                found.append(row)
                size_bytes += row_bytes
                if len(found) == selection.limit:
                    return found
                if size_bytes >= most_bytes and selection.max_bytes is not None:
                    return found
            if len(found) > MAX_ROWS or size_bytes > MAX_BYTES:
                raise TooManyRows
        return found

    async def _cached(self, run_id: str, part: ArchivePart) -> bytes:
        key = part_key(run_id, part.number)
        content = self._cache.get(key, part.file_digest)
        if content is None:
            content = await asyncio.to_thread(self._read, run_id, part)
            self._cache.keep(key, part.file_digest, content)
        return content

    def _read(self, run_id: str, part: ArchivePart) -> bytes:
        key = part_key(run_id, part.number)
        content = self._store.get(key)
        if hashlib.sha256(content).digest() != part.file_digest:
            raise _unlike(key)
        return content

    @property
    def _store(self) -> ObjectStore:
        if self._objects is None:
            raise NoArchive
        return self._objects


def _selected(content: bytes, run_id: str, selection: Selection) -> list[tuple[OutcomeRow, int]]:
    return list(read_parquet(content, run_id, selection))


def _unlike(key: str) -> ObjectStoreUnavailable:
    return ObjectStoreUnavailable(problem=f"{key} is not as it was written")
