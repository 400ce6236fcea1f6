"""The port of batches: the files that results writes of their runs."""

from collections.abc import AsyncIterator
from typing import Protocol

from proctor.values.run import RunId
from services.scheduler.batches.stored_batch import MissingLines


class BatchLines(Protocol):
    """Lines of the files of a run that is closed, as results writes them: the same each time."""

    def output(self, run_id: RunId) -> AsyncIterator[bytes]:
        """Raises `RemoteError`."""
        ...

    def errors(self, run_id: RunId, missing: MissingLines) -> AsyncIterator[bytes]:
        """Raises `RemoteError`."""
        ...
