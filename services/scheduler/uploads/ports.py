"""Ports of uploads: the object store, and the stores of data sets and of files."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from services.scheduler.changes.user_change import Author
from services.scheduler.uploads.dataset import (
    Dataset,
    DatasetContent,
    DatasetCursor,
    DatasetId,
    DatasetPage,
    NamedContent,
)
from services.scheduler.uploads.stored_file import FileId, FileList, FilePage, StoredFile

Checked = TypeVar("Checked")


@dataclass(frozen=True, slots=True)
class CheckJob(Generic[Checked]):
    """A check for a process: the module that it runs, the check in plain values, the type of the result."""

    program: str
    check: object
    checked: type[Checked]


class ObjectStore(Protocol):
    """Objects by key. All calls block, so call them in a thread. All raise `ObjectStoreUnavailable`."""

    def put(self, key: str, chunks: Sequence[bytes]) -> None:
        """Stores one object of all chunks, atomically."""
        ...

    def get(self, key: str) -> bytes: ...

    def get_range(self, key: str, start: int, length: int) -> bytes: ...

    def keys(self, prefix: str) -> Iterator[str]:
        """Keys of all objects under the prefix, also of unfinished ones that a killed process left."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Ignores missing objects."""
        ...


class ContentSource(Protocol):
    """Rows that runs can use."""

    async def content(self, dataset_id: str) -> NamedContent:
        """Rows of a data set, or of a file without faults. Raises `DatasetNotFound`."""
        ...


class DatasetStore(Protocol):
    """Data sets and their contents, which they may share with files.

    A prefix is unreferenced while no content and no file uses the objects under it.
    """

    async def register_prefix(self, prefix: str) -> None:
        """Marks the prefix as unreferenced. Called before the first object is stored under it."""
        ...

    async def add(self, dataset: Dataset, request_id: str) -> Dataset:
        """Returns the data set as stored: that of the user's first call with this request id.

        Its content is the existing one if the same file is already stored. Raises `StorageQuotaExceeded`.
        """
        ...

    async def find_by_request(self, request_id: str, user: str) -> Dataset | None:
        """The data set stored by an earlier call of this user with this request id."""
        ...

    async def get(self, dataset_id: DatasetId) -> Dataset:
        """Raises `DatasetNotFound`."""
        ...

    async def page(self, size: int, after: DatasetCursor | None) -> DatasetPage: ...

    async def delete(self, dataset_id: DatasetId, author: Author) -> DatasetContent | None:
        """Stores the author too. Returns the content if nothing else uses it.

        Its prefix is then unreferenced.

        Raises `DatasetNotFound`, or `DatasetInUse` if an unfinished run uses the data set.
        """
        ...

    async def unreferenced_prefixes(self, before: datetime) -> Sequence[str]:
        """Prefixes that have been unreferenced since before that time."""
        ...

    async def delete_unreferenced_prefix(self, prefix: str) -> None:
        """Called once no object is left under the prefix."""
        ...


class FileStore(Protocol):
    """Files, and the contents that valid ones share with data sets. Prefixes work as in `DatasetStore`."""

    async def register_prefixes(self, prefixes: Sequence[str]) -> None:
        """Marks the prefixes as unreferenced. Called before the first object is stored under them."""
        ...

    async def add(self, file: StoredFile, request_id: str) -> StoredFile:
        """Returns the file as stored: that of the user's first call with this request id.

        Raises `StorageQuotaExceeded`.
        """
        ...

    async def find_by_request(self, request_id: str, user: str) -> StoredFile | None:
        """The file stored by an earlier call of this user with this request id."""
        ...

    async def get(self, file_id: FileId) -> StoredFile:
        """Raises `FileNotFound`."""
        ...

    async def page(self, wanted: FileList) -> FilePage:
        """Raises `FileNotFound` if the file to start after does not exist."""
        ...

    async def delete(self, file_id: FileId, author: Author | None) -> Sequence[str]:
        """Returns now unreferenced prefixes. Raises `FileNotFound`, `FileInUse` or `FileInUseByRun`.

        Stores the author too; None for a file that has expired.
        """
        ...

    async def expired(self, now: datetime, limit: int, after: int) -> Sequence[FileId]:
        """Expired files, earliest expiry first, without the first `after` of them."""
        ...


class Objects(Protocol):
    """The part of the object store that a check needs."""

    def put(self, key: str, chunks: Sequence[bytes]) -> None: ...


class RunningCheck(Protocol):
    """A check of an upload in a process. What is sent after its end has no effect."""

    async def begin(self) -> None: ...

    async def add(self, piece: bytes) -> None:
        """Waits while the process is busy."""
        ...

    async def finish(self) -> None:
        """The last piece was added."""
        ...

    async def result(self) -> Any:
        """Stores what the check stores, and returns its result. Raises its error, or `CheckStopped`."""
        ...

    async def end(self, *, is_done: bool) -> None:
        """Stops the process, which ends by itself if it is done."""
        ...


# Starts a job that stores objects below some prefixes, with a limit in seconds.
StartCheck = Callable[[CheckJob[Any], Objects, Sequence[str], float], Awaitable[RunningCheck]]
