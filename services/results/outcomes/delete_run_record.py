"""Deletes all that is stored of a run. An unknown run is not an error, so a call can be repeated."""

from dataclasses import dataclass
from typing import Protocol

from services.results.outcomes.ports import OutcomeStore
from services.results.runs.ports import RunRecordStore


class ArchiveDeletion(Protocol):
    async def delete(self, run_id: str) -> bool:
        """Deletes the archive of a run, if it has one; False where it has to stay for a while."""
        ...


@dataclass(frozen=True, slots=True)
class DeleteRunRecord:
    """`archives` None: there is no store for archives."""

    records: RunRecordStore
    outcomes: OutcomeStore
    archives: ArchiveDeletion | None = None

    async def delete(self, run_id: str) -> None:
        """Deletes the record: no list has the run, and no outcome is accepted for it. `sweep` goes on."""
        await self.records.delete(run_id)

    async def sweep(self) -> None:
        """Deletes the outcomes of deleted runs, possibly millions. The next sweep goes on after a kill."""
        for run_id in await self.records.deleted():
            await self.outcomes.delete(run_id)
            if self.archives is None or await self.archives.delete(run_id):
                await self.records.delete_deletion(run_id)
