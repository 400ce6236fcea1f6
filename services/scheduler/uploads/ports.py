"""Ports of uploads: the object store, and the stores of data sets and of files."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from services.scheduler.uploads.dataset import (
    NamedContent,
)

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


class Objects(Protocol):
    """The part of the object store that a check needs."""

    def put(self, key: str, chunks: Sequence[bytes]) -> None: ...


class Columns(Protocol):
    """What is asked of the columns of a table, and the value of a row."""

    def check(self, names: Sequence[str]) -> None:
        """Raises `BrokenFile`."""
        ...

    def value(self, cells: Mapping[str, object]) -> object: ...


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
