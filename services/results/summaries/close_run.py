"""Closes an epoch of a run: freezes it, computes and stores its summary. Later outcomes change nothing."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from proctor.values.run import RunState
from services.common.errors import DependencyUnavailable
from services.results.metrics import CLOSE_SECONDS
from services.results.runs.open_run import check_epoch
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunRecord
from services.results.summaries.ports import SummaryStore
from services.results.summaries.run_summary import RunSummary
from services.results.summaries.summarize_run import SummarizeRun, SummaryWork

# Small runs are closed within one call; for others the leader shows the share and calls again.
ANSWER_SECONDS = 3.0
# An outage passes within two; what fails a third time is one query that never ends.
TRIES = 3
# Runs whose close failed and was not asked for again, such as deleted ones: the oldest are forgotten.
MAX_REMEMBERED_FAILURES = 256

_Epoch = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Closing:
    """`summary` is None while it is computed; `share` of the answers are read."""

    summary: RunSummary | None
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class _Computing:
    work: SummaryWork
    task: asyncio.Task[RunSummary]


@dataclass(frozen=True, slots=True)
class CloseRun:
    """`computing`: summaries under way or failed, by run and epoch.

    `failures`: how often a store did not answer.
    """

    records: RunRecordStore
    summaries: SummaryStore
    summarize_run: SummarizeRun
    computing: dict[_Epoch, _Computing] = field(default_factory=dict)
    failures: Counter[_Epoch] = field(default_factory=Counter)

    async def close(self, run_id: str, epoch: int, state: RunState | None, *, allow_partial: bool) -> Closing:
        """Returns the summary, or how far it is; a repeated call returns that of the first.

        The rows cannot change between the freeze and the figures, so no lock is held while they are computed,
        which continues without a caller. A state that differs from the stored one replaces it, also in
        leaderboards and histories.
        """
        record = await self.records.get(run_id)
        if allow_partial and epoch > record.epoch:
            # A run that is stopped before its new epoch was opened is closed in it all the same.
            record = await self.records.open(record.plan, epoch)
        check_epoch(record, epoch)
        is_other_state = record.is_frozen and state not in (None, record.state)
        kept = await self.summaries.find(run_id, epoch)
        if kept is None:
            if not record.is_frozen or is_other_state:
                # Waits for batches under way, which hold a share lock on the record.
                await self.records.freeze(record.plan, epoch, state, allow_partial=allow_partial)
            closing = await self._computed(record)
        else:
            self._forget((run_id, epoch))
            closing = Closing(kept)
        if closing.summary is not None and is_other_state and state is not None:
            # Also of a summary that was stored while this call waited for the record.
            await self.summaries.change_state(record.plan, closing.summary, state)
        return closing

    async def _computed(self, record: RunRecord) -> Closing:
        """Waits a moment for the figures. What a store never answers is left out of the last try."""
        key = (record.plan.run_id, record.epoch)
        computing = self.computing.get(key) or self._start(record)
        # `wait` leaves the task running: the next call finds it.
        await asyncio.wait((computing.task,), timeout=ANSWER_SECONDS)
        if not computing.task.done():
            return Closing(None, computing.work.share)
        self.computing.pop(key, None)
        try:
            summary = await computing.task
        except DependencyUnavailable:
            self.failures[key] += 1
            raise
        self._forget(key)
        return Closing(summary)

    def _forget(self, key: _Epoch) -> None:
        self.computing.pop(key, None)
        self.failures.pop(key, None)

    def _start(self, record: RunRecord) -> _Computing:
        key = (record.plan.run_id, record.epoch)
        work = SummaryWork(is_last_try=self.failures[key] >= TRIES - 1)

        async def summed_up() -> RunSummary:
            with CLOSE_SECONDS.time():
                summary = await self.summarize_run.summarize(record, work)
                return await self.summaries.keep(record.plan, summary)

        computing = _Computing(work, asyncio.create_task(summed_up(), name=f"close {key[0]}"))
        self.computing[key] = computing
        computing.task.add_done_callback(self._forget_ended)
        return computing

    def _forget_ended(self, _: asyncio.Task[RunSummary]) -> None:
        """The next call finds a summary in the store. A failure waits here for it, among the latest."""
        ended = {key: computing.task for key, computing in self.computing.items() if computing.task.done()}
        failed = [key for key, task in ended.items() if _has_failed(task)]
        for key in (ended.keys() - set(failed)) | set(failed[:-MAX_REMEMBERED_FAILURES]):
            self._forget(key)
        for key in list(self.failures)[:-MAX_REMEMBERED_FAILURES]:
            del self.failures[key]


def _has_failed(task: asyncio.Task[RunSummary]) -> bool:
    return task.cancelled() or task.exception() is not None
