"""Deleting: the run goes at once; results is told, by a sweep of the leader again until it has heard."""

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
# Whoever deleted the run tells results first.
TELLING = timedelta(seconds=30)


@dataclass(frozen=True)
class DeleteRun:
    runs: DeletedRunStore
    record: RecordDeletion
    clock: Clock

    async def delete(self, run_id: RunId) -> None:
        """Raises `RunNotFound` or `RunNotOver`. Once it returns, nobody finds the run any more."""
        await self.runs.delete(run_id, self.clock.now())
        try:
            await self._tell(run_id)
        except DomainError as error:
            log.info("results not told of a deleted run", run=run_id, error=str(error))

    async def lead(self) -> NoReturn:
        """For ever, in the hands of the leader."""
        await every(SWEEP_SECONDS, self.sweep, name="tell results of deleted runs")

    async def sweep(self) -> None:
        """Tells results again of what it may still have."""
        for run_id in await self.runs.deleted(self.clock.now() - TELLING):
            await self._tell(run_id)

    async def _tell(self, run_id: RunId) -> None:
        await self.record.delete_run(run_id)
        await self.runs.forget_deleted(run_id)
