"""Deletes sets of tasks that no order followed, or whose suites are deleted."""

from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn

from services.common.clock import Clock
from services.common.lifecycle import every
from services.scheduler.uploads.task_sets.postgres import PostgresTaskSets

# For an order that follows its upload.
_KEPT_UPLOADS = timedelta(days=1)
# A suite is stored within seconds after its use is.
_KEPT_USES = timedelta(hours=1)
_DELETE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class DeleteUnusedTasks:
    """The objects of deleted sets are deleted with those of other unreferenced prefixes."""

    sets: PostgresTaskSets
    clock: Clock

    async def lead(self) -> NoReturn:
        await every(_DELETE_SECONDS, self.delete, name="delete unused tasks")

    async def delete(self) -> None:
        now = self.clock.now()
        await self.sets.delete_unused(now - _KEPT_UPLOADS, now - _KEPT_USES)
