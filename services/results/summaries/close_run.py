"""Closes an epoch of a run: freezes it, computes and keeps its summary. Later outcomes change nothing."""

from services.results.runs.errors import RecordNotFound
from services.results.runs.open_run import check_epoch
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import FinalState, RunRecord
from services.results.standings.standing import standing_of
from services.results.summaries.run_summary import RunSummary
from services.results.summaries.summarize_run import SummarizeRun


class CloseRun:
    def __init__(self, records: RunRecordStore, summarize: SummarizeRun) -> None:
        self._records = records
        self._summarize = summarize

    async def __call__(
        self, run_id: str, epoch: int, state: FinalState, *, allow_partial: bool
    ) -> RunSummary:
        """A repeated call gives the summary of the first; one that died on the way is taken up again.

        The rows cannot change between the freeze and the figures, so no lock is held while they are computed.
        """
        record = await self._found(run_id)
        if allow_partial and epoch > record.epoch:
            # A run that is stopped before its new epoch was opened is closed in it all the same.
            record = await self._records.open(record.plan, epoch)
        check_epoch(record, epoch)
        kept = await self._records.find_summary(run_id, epoch)
        if kept is not None:
            return kept
        await self._records.freeze(record.plan, epoch, state, allow_partial=allow_partial)
        summary = await self._summarize.compute(record)
        return await self._records.keep_summary(summary, standing_of(record.plan, summary))

    async def _found(self, run_id: str) -> RunRecord:
        record = await self._records.find(run_id)
        if record is None:
            raise RecordNotFound(run_id=run_id)
        return record
