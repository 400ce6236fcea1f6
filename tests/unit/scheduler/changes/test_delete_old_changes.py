"""Old changes are deleted by age and by number, in short statements, until none is left."""

from datetime import datetime, timedelta

from services.scheduler.changes.delete_old_changes import AT_A_TIME, DeleteOldChanges
from tests.fakes.scheduler.surroundings import SetClock

CLOCK = SetClock()
DAYS, KEPT = 30, 3


class Changes:
    """Changes of these ages in days."""

    def __init__(self, *ages: int) -> None:
        self.times = sorted(CLOCK.now() - timedelta(days=age) for age in ages)
        self.statements = 0

    async def delete_oldest(self, before: datetime, kept: int, limit: int) -> int:
        self.statements += 1
        too_many = len(self.times) - kept
        old = [time for index, time in enumerate(self.times) if time < before or index < too_many][:limit]
        self.times = self.times[len(old) :]
        return len(old)


async def deleted(changes: Changes) -> list[int]:
    """The ages of those that are left, the oldest first."""
    await DeleteOldChanges(changes=changes, clock=CLOCK, days=DAYS, max_changes=KEPT).delete()
    return [(CLOCK.now() - time).days for time in changes.times]


async def test_changes_are_kept_for_the_days_of_the_setting() -> None:
    assert await deleted(Changes(1, 29, 30, 31)) == [30, 29, 1]


async def test_the_latest_are_kept_where_there_are_too_many() -> None:
    assert await deleted(Changes(1, 2, 3, 4, 5)) == [3, 2, 1]


async def test_more_than_one_statement_takes_are_all_deleted() -> None:
    changes = Changes(*([40] * (2 * AT_A_TIME + 1)), 1)
    assert await deleted(changes) == [1]
    assert changes.statements == 3
