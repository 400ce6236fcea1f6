"""Gives the absolute counts of a run, every shard included: what makes lost progress reports good."""

from services.results.runs.errors import RecordNotFound
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_counts import RunCounts


class ReportCounts:
    def __init__(self, records: RunRecordStore) -> None:
        self._records = records

    async def __call__(self, run_id: str) -> RunCounts:
        record = await self._records.find(run_id)
        if record is None:
            raise RecordNotFound(run_id=run_id)
        return await self._records.all_counts(record.plan)
