"""Deletes records of the audit that are older than the operator keeps them, and the oldest of too many."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NoReturn, Protocol

from services.common.clock import Clock
from services.common.lifecycle import every
from services.scheduler.audit.audit_record import Outcome

# They are kept for a year: an hour more does not matter.
EVERY_SECONDS = 3600.0
# Short statements, so that no lock is held long.
AT_A_TIME = 5000
# Each outcome is counted by itself: who reads much or is refused again and again must not push out changes.
MAX_REFUSED = 100_000


class OldRecords(Protocol):
    async def delete_oldest(self, outcome: Outcome, before: datetime, kept: int, limit: int) -> int:
        """Deletes at most `limit` records made before or behind the latest `kept`. Returns how many."""
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
        before = self.clock.now() - timedelta(days=self.days)
        for outcome in Outcome:
            most = MAX_REFUSED if outcome is Outcome.REFUSED else self.max_records
            kept = min(self.max_records, most)
            while await self.records.delete_oldest(outcome, before, kept, AT_A_TIME) == AT_A_TIME:
                pass
