"""Ports of archives: the object store, the files in it, and the reader of both."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from services.results.archives.archive import ArchivePart, OutcomeRow, Selection


class ObjectStore(Protocol):
    """Objects by key. All calls block, so call them in a thread. All raise `ObjectStoreUnavailable`."""

    def put(self, key: str, chunks: Sequence[bytes]) -> None:
        """Stores one object of all chunks, atomically."""
        ...

    def get(self, key: str) -> bytes: ...

    def keys(self, prefix: str) -> Iterator[str]:
        """Keys of all objects under the prefix, also of unfinished ones that a killed process left."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Ignores missing objects."""
        ...


class StoredRow(Protocol):
    """A row of the table, by the names of its columns."""

    def __getitem__(self, column: str, /) -> Any: ...  # columns have many types


class ArchivedRows(Protocol):
    """Reads the outcomes of archived runs."""

    async def rows(self, run_id: str, parts: Sequence[ArchivePart], selection: Selection) -> list[OutcomeRow]:
        """Rows of the table that are selected, in order. Raises `TooManyRows`."""
        ...


class ArchiveFiles(ArchivedRows, Protocol):
    """The files of archives. All calls may raise `NoArchive` and `ObjectStoreUnavailable`."""

    def check(self) -> None:
        """Raises `NoArchive` where there is no store."""
        ...

    async def write(self, run_id: str, number: int, rows: Sequence[StoredRow]) -> tuple[int, bytes]:
        """Writes a part and returns the size and the SHA-256 of its file."""
        ...

    async def read_part(self, run_id: str, part: ArchivePart) -> list[OutcomeRow]:
        """All rows of a part, from the store itself."""
        ...

    async def write_manifest(self, run_id: str, epoch: int, parts: Sequence[ArchivePart]) -> None:
        """Writes what the folder has, and reads it back."""
        ...

    async def keys(self, run_id: str) -> list[str]:
        """The keys of all files in the folder of a run; none without a store."""
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Ignores missing files."""
        ...
