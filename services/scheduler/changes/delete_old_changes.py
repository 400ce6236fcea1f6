"""Deletes changes that are older than the operator keeps them, and the oldest of too many."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NoReturn, Protocol

from services.common.clock import Clock
from services.common.lifecycle import every

# They are kept for a year: an hour more does not matter.
EVERY_SECONDS = 3600.0
# Short statements, so that no lock is held long.
AT_A_TIME = 5000


class OldChanges(Protocol):
    async def delete_oldest(self, before: datetime, kept: int, limit: int) -> int:
        """Deletes, of the `limit` oldest, those made before or behind the latest `kept`. Returns how many."""
        ...


@dataclass(frozen=True, slots=True)
class DeleteOldChanges:
    changes: OldChanges
    clock: Clock
    days: float
    max_changes: int

    async def lead(self) -> NoReturn:
        await every(EVERY_SECONDS, self.delete, name="delete old changes")

    async def delete(self) -> None:
        before = self.clock.now() - timedelta(days=self.days)
        while await self.changes.delete_oldest(before, self.max_changes, AT_A_TIME) == AT_A_TIME:
            pass
