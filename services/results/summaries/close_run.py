"""Closes an epoch of a run: freezes it, computes and stores its summary. Later outcomes change nothing."""

from dataclasses import dataclass

from proctor.values.run import RunState
from services.results.runs.open_run import check_epoch
from services.results.runs.ports import RunRecordStore
from services.results.summaries.ports import SummaryStore
from services.results.summaries.run_summary import RunSummary
from services.results.summaries.summarize_run import SummarizeRun


@dataclass(frozen=True, slots=True)
class CloseRun:
    records: RunRecordStore
    summaries: SummaryStore
    summarize_run: SummarizeRun

    async def close(
        self, run_id: str, epoch: int, state: RunState | None, *, allow_partial: bool
    ) -> RunSummary:
        """Returns the summary; a repeated call returns that of the first, and completes one that died.

        The rows cannot change between the freeze and the figures, so no lock is held while they are computed.
        """
        record = await self.records.get(run_id)
        if allow_partial and epoch > record.epoch:
            # A run that is stopped before its new epoch was opened is closed in it all the same.
            record = await self.records.open(record.plan, epoch)
        check_epoch(record, epoch)
        kept = await self.summaries.find(run_id, epoch)
        if kept is not None:
            return kept
        await self.records.freeze(record.plan, epoch, state, allow_partial=allow_partial)
        return await self.summaries.keep(record.plan, await self.summarize_run.summarize(record))
