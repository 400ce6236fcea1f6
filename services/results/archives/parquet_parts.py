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


@dataclass(slots=True)
class _Taken:
    """The rows of a selection, up to its limits."""

    run_id: str
    selection: Selection
    rows: list[OutcomeRow] = field(default_factory=list)
    size_bytes: int = 0

    @property
    def is_full(self) -> bool:
        most = self.selection.max_bytes
        return len(self.rows) == self.selection.limit or (most is not None and self.size_bytes >= most)

    def take(self, content: bytes) -> None:
        """Takes those of a file. Raises `TooManyRows`."""
        for row, size_bytes in read_parquet(content, self.run_id, self.selection):
            self.rows.append(row)
            self.size_bytes += size_bytes
            if self.is_full:
                return
            if len(self.rows) > MAX_ROWS or self.size_bytes > MAX_BYTES:
                raise TooManyRows


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
        digest = hashlib.sha256(content).digest()
        await asyncio.to_thread(self._store.put, part_key(run_id, number, digest), [content])
        return len(content), digest

    async def read_part(self, run_id: str, part: ArchivePart) -> list[OutcomeRow]:
        content = await asyncio.to_thread(self._read, run_id, part)
        return await asyncio.to_thread(lambda: [row for row, _ in read_parquet(content, run_id, WHOLE)])

    async def write_manifest(self, run_id: str, epoch: int, parts: Sequence[ArchivePart]) -> None:
        content, key = manifest(run_id, epoch, parts), manifest_key(run_id)
        await asyncio.to_thread(self._store.put, key, [content])
        if await asyncio.to_thread(self._store.get, key) != content:
            raise _unlike(key)

    async def keys(self, run_id: str) -> list[str]:
        if self._objects is None:
            return []
        store = self._objects
        return await asyncio.to_thread(lambda: list(store.keys(folder_of(run_id))))

    async def delete(self, keys: Sequence[str]) -> None:
        if keys:
            await asyncio.to_thread(self._store.delete, keys)

    async def rows(self, run_id: str, parts: Sequence[ArchivePart], selection: Selection) -> list[OutcomeRow]:
        taken = _Taken(run_id, selection)
        for part in parts:
            if selection.may_have(part.first, part.last) and not taken.is_full:
                await asyncio.to_thread(taken.take, await self._cached(run_id, part))
        return taken.rows

    async def _cached(self, run_id: str, part: ArchivePart) -> bytes:
        key = part_key(run_id, part.number, part.file_digest)
        content = self._cache.get(key, part.file_digest)
        if content is None:
            content = await asyncio.to_thread(self._read, run_id, part)
            self._cache.keep(key, part.file_digest, content)
        return content

    def _read(self, run_id: str, part: ArchivePart) -> bytes:
        key = part_key(run_id, part.number, part.file_digest)
        content = self._store.get(key)
        if hashlib.sha256(content).digest() != part.file_digest:
            raise _unlike(key)
        return content

    @property
    def _store(self) -> ObjectStore:
        if self._objects is None:
            raise NoArchive
        return self._objects


def _unlike(key: str) -> ObjectStoreUnavailable:
    return ObjectStoreUnavailable(problem=f"{key} is not as it was written")
