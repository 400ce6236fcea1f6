"""Reports the absolute counts of a run, every shard included: they make up for lost progress reports."""

from dataclasses import dataclass

from services.results.runs.ports import RunRecordStore
from services.results.runs.run_progress import RunProgress


@dataclass(frozen=True, slots=True)
class ReportCounts:
    records: RunRecordStore

    async def report(self, run_id: str) -> RunProgress:
        record = await self.records.get(run_id)
        return await self.records.all_counts(record.plan)
