"""What deleting needs of the world."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from services.scheduler.runs.run import RunId


class DeletedRunStore(Protocol):
    """Runs as they go for good."""

    async def delete(self, run_id: RunId, now: datetime) -> None:
        """Raises `RunNotFound`, or `RunNotOver`."""
        ...

    async def deleted(self, before: datetime) -> Sequence[RunId]:
        """Runs deleted before a moment that results may still have, the earliest first."""
        ...

    async def forget_deleted(self, run_id: RunId) -> None:
        """Results has it no more."""
        ...
