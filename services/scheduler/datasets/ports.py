"""What data sets need of the world: a place for objects, and what is known of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from services.scheduler.datasets.dataset import (
    Dataset,
    DatasetContent,
    DatasetCursor,
    DatasetId,
    DatasetPage,
    NamedContent,
)


@dataclass(frozen=True, slots=True)
class StoredObject:
    key: str
    stored_at: datetime


class ObjectStore(Protocol):
    """Objects by key. Each call blocks, so it is made in a thread, and raises `ObjectStoreUnavailable`."""

    def put(self, key: str, chunks: Sequence[bytes]) -> None:
        """One object of all chunks, as a whole or not at all."""
        ...

    def get(self, key: str) -> bytes: ...

    def get_range(self, key: str, start: int, length: int) -> bytes: ...

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """All below the prefix, also what a killed process has left of an object."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """What is not there is no error."""
        ...


class ContentSource(Protocol):
    """Rows that runs can be over."""

    async def content(self, dataset_id: str) -> NamedContent:
        """Of a data set, or of a file whose lines are sound. Raises `DatasetNotFound`."""
        ...


@dataclass(frozen=True, slots=True)
class NewDataset:
    """An uploaded file whose rows are in the object store, under a prefix of its own."""

    dataset: Dataset
    request_id: str


class DatasetStore(Protocol):
    """Data sets and their contents, which they may share with files.

    A prefix is loose while objects may lie there that no content and no file has.
    """

    async def begin(self, prefix: str) -> None:
        """Before the first object is stored there: the prefix is loose until a content has it."""
        ...

    async def add(self, new: NewDataset) -> Dataset:
        """As stored: that of the user's first call with this id, with the content of the same file."""
        ...

    async def ordered(self, request_id: str, user: str) -> Dataset | None:
        """What an earlier call of this user with this id has stored."""
        ...

    async def get(self, dataset_id: DatasetId) -> Dataset:
        """Raises `DatasetNotFound`."""
        ...

    async def page(self, size: int, after: DatasetCursor | None) -> DatasetPage: ...

    async def delete(self, dataset_id: DatasetId) -> DatasetContent | None:
        """The content where it was the last of it: its prefix is loose now.

        Raises `DatasetNotFound`, or `DatasetInUse` where a run over it waits, runs or is paused.
        """
        ...

    async def loose_prefixes(self, before: datetime) -> Sequence[str]:
        """Those that are loose since before then."""
        ...

    async def forget_loose_prefix(self, prefix: str) -> None:
        """Nothing lies there any more."""
        ...
