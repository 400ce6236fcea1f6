"""Deletes a run at once, and its record in results; the leader repeats the latter until it succeeds."""

from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn

from proctor.values.run import RunId
from services.common.clock import Clock
from services.common.errors import DomainError
from services.common.lifecycle import every
from services.common.structured_logs import get_logger
from services.scheduler.runs.lifecycle.ports import DeletedRunStore, RecordDeletion

log = get_logger()

SWEEP_SECONDS = 10.0
# The call that deleted the run tries first.
FIRST_ATTEMPT = timedelta(seconds=30)


@dataclass(frozen=True)
class DeleteRun:
    runs: DeletedRunStore
    record: RecordDeletion
    clock: Clock

    async def delete(self, run_id: RunId) -> None:
        """Raises `RunNotFound` or `RunNotOver`. Once it returns, the run is gone."""
        await self.runs.delete(run_id, self.clock.now())
        try:
            await self._delete_record(run_id)
        except DomainError as error:
            log.info("record of a deleted run not deleted", run=run_id, error=str(error))

    async def lead(self) -> NoReturn:
        """For ever, in the hands of the leader."""
        await every(SWEEP_SECONDS, self.sweep, name="delete records of deleted runs")

    async def sweep(self) -> None:
        """Tells results again of what it may still have."""
        for run_id in await self.runs.deleted(self.clock.now() - FIRST_ATTEMPT):
            await self._delete_record(run_id)

    async def _delete_record(self, run_id: RunId) -> None:
        await self.record.delete_run(run_id)
        await self.runs.forget_deleted(run_id)
