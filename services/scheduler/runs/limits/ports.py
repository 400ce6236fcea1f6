"""The store of limits."""

from datetime import datetime
from typing import Protocol

from services.scheduler.runs.limits.queue_limits import LimitChanges, QueueLimits


class LimitStore(Protocol):
    """Limits that hold for all replicas, and the requests of users."""

    async def limits(self) -> QueueLimits:
        """For showing. A store that enforces a limit reads it in the same transaction."""
        ...

    async def change(self, changes: LimitChanges) -> QueueLimits:
        """The limits as they are then; once it returns, nothing is decided by the old ones any more."""
        ...

    async def count_request(self, user: str, now: datetime) -> int:
        """Requests that the user has left in this minute. Raises `TooManyRequests`."""
        ...

    async def forget_requests(self, before: datetime) -> None:
        """Drops the counts of minutes that are over."""
        ...
