"""Old records of the audit are deleted by age and by number, in short statements, until none is left."""

from datetime import datetime, timedelta

from services.scheduler.audit.audit_record import Outcome
from services.scheduler.audit.delete_old_records import AT_A_TIME, DeleteOldRecords
from tests.fakes.scheduler.surroundings import SetClock

CLOCK = SetClock()
DAYS, KEPT = 30, 3


class Records:
    """Records of these ages in days."""

    def __init__(self, *ages: int) -> None:
        self.times = sorted(CLOCK.now() - timedelta(days=age) for age in ages)
        self.statements = 0

    async def delete_oldest(self, outcome: Outcome, before: datetime, kept: int, limit: int) -> int:
        if outcome is not Outcome.DONE:
            return 0
        self.statements += 1
        too_many = len(self.times) - kept
        old = [time for index, time in enumerate(self.times) if time < before or index < too_many][:limit]
        self.times = self.times[len(old) :]
        return len(old)


async def deleted(records: Records) -> list[int]:
    """The ages of those that are left, the oldest first."""
    await DeleteOldRecords(records=records, clock=CLOCK, days=DAYS, max_records=KEPT).delete()
    return [(CLOCK.now() - time).days for time in records.times]


async def test_records_are_kept_for_the_days_of_the_setting() -> None:
    assert await deleted(Records(1, 29, 30, 31)) == [30, 29, 1]


async def test_the_latest_are_kept_where_there_are_too_many() -> None:
    assert await deleted(Records(1, 2, 3, 4, 5)) == [3, 2, 1]


async def test_more_than_one_statement_takes_are_all_deleted() -> None:
    records = Records(*([40] * (2 * AT_A_TIME + 1)), 1)
    assert await deleted(records) == [1]
    assert records.statements == 3
