"""Deletes all that is stored of a run. An unknown run is not an error, so a call can be repeated."""

from dataclasses import dataclass

from services.results.outcomes.ports import OutcomeStore
from services.results.runs.ports import RunRecordStore


@dataclass(frozen=True, slots=True)
class DeleteRunRecord:
    records: RunRecordStore
    outcomes: OutcomeStore

    async def delete(self, run_id: str) -> None:
        """Deletes the record first: from then on no outcome of the run is accepted.

        A call that was killed is completed by the next one.
        """
        await self.records.delete(run_id)
        # Possibly millions of rows; see `delete_outcomes`, which deletes only where the record is gone.
        await self.outcomes.delete(run_id)
