"""Deletes records of the audit that are older than the operator keeps them, and the oldest of too many."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NoReturn, Protocol

from services.common.clock import Clock
from services.common.lifecycle import every

# They are kept for a year: an hour more does not matter.
EVERY_SECONDS = 3600.0
# Short statements, so that no lock is held long.
AT_A_TIME = 5000
# Counted by themselves: who is refused again and again must not push out what others did.
MAX_REFUSED = 100_000


class OldRecords(Protocol):
    async def delete_oldest(self, before: datetime, kept: int, limit: int, *, is_refused: bool) -> int:
        """Deletes at most `limit` records made before or behind the latest `kept`. Returns how many.

        Of refusals, or of all others.
        """
        ...


@dataclass(frozen=True, slots=True)
class DeleteOldRecords:
    records: OldRecords
    clock: Clock
    days: float
    max_records: int

    async def lead(self) -> NoReturn:
        await every(EVERY_SECONDS, self.delete, name="delete old audit records")

    async def delete(self) -> None:
        for is_refused, kept in ((False, self.max_records), (True, min(self.max_records, MAX_REFUSED))):
            before = self.clock.now() - timedelta(days=self.days)
            while await self._some(before, kept, is_refused=is_refused) == AT_A_TIME:
                pass

    async def _some(self, before: datetime, kept: int, *, is_refused: bool) -> int:
        return await self.records.delete_oldest(before, kept, AT_A_TIME, is_refused=is_refused)
