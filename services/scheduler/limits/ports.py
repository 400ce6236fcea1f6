"""The port by which limits are stored."""

from datetime import datetime
from typing import Protocol

from services.scheduler.audit.audit_record import Author
from services.scheduler.limits.queue_limits import LimitChanges, QueueLimits, RequestAllowance


class LimitStore(Protocol):
    """Limits that hold for all replicas, and the requests of users."""

    async def limits(self) -> QueueLimits:
        """The limits, to show them. A store that enforces a limit reads it in the same transaction."""
        ...

    async def change(self, changes: LimitChanges, author: Author) -> QueueLimits:
        """Stores the author in the same transaction.

        The limits as they are then; once it returns, nothing is decided by the old ones any more."""
        ...

    async def count_request(self, user: str, now: datetime, *, is_read: bool = False) -> RequestAllowance:
        """Counts a request, or a read, of the user. Raises `TooManyRequests`."""
        ...

    async def delete_request_counts(self, before: datetime) -> None:
        """Deletes the counts of minutes that are over."""
        ...
