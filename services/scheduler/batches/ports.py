"""Ports of batches: their store, and the files that results writes of their runs."""

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Protocol

from proctor.values.run import RunId
from services.scheduler.batches.stored_batch import Batch, BatchFiles, BatchId, MissingLines
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.uploads.stored_file import StoredFile


class BatchStore(Protocol):
    """Batches with their runs, as users make and see them and as the leader ends them."""

    async def add(self, batch: Batch, request_id: str) -> Batch:
        """Stores the batch and its run, both or none; or gives that of the user's first call with this id.

        Raises `BatchRequestTaken` where that ordered something else; `QueueFull`, `PriorityNotAllowed` or
        `StorageQuotaExceeded`, by the limits of this moment; `DatasetNotFound` where the file has gone.
        """
        ...

    async def ordered(self, request_id: str, user: str) -> Batch | None:
        """The batch that an earlier call of this user with this id has stored."""
        ...

    async def get(self, batch_id: BatchId) -> Batch:
        """Raises `BatchNotFound`."""
        ...

    async def page(self, size: int, after: BatchId | None) -> Sequence[Batch]:
        """Newest first. Raises `BatchNotFound` where there is no batch to begin behind."""
        ...

    async def to_finalize(self, others: Collection[BatchId], limit: int) -> Sequence[BatchId]:
        """Batches whose run is closed and whose files are not written yet, except `others`."""
        ...

    async def finalize(
        self, token: FencingToken, batch_id: BatchId, written: BatchFiles, files: Sequence[StoredFile]
    ) -> bool:
        """Names the files, all or none; False where another has done so, or the batch has gone.

        Raises `LeadershipLost` once another leads.
        """
        ...


class BatchLines(Protocol):
    """Lines of the files of a run that is closed, as results writes them: the same each time."""

    def output(self, run_id: RunId) -> AsyncIterator[bytes]:
        """Raises `RemoteError`."""
        ...

    def errors(self, run_id: RunId, missing: MissingLines) -> AsyncIterator[bytes]:
        """Raises `RemoteError`."""
        ...
