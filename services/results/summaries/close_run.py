"""Closes an epoch of a run: freezes it, computes and stores its summary. Later outcomes change nothing."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

from proctor.values.run import RunState
from services.common.errors import DependencyUnavailable
from services.results.runs.open_run import check_epoch
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunRecord
from services.results.summaries.ports import SummaryStore
from services.results.summaries.run_summary import RunSummary
from services.results.summaries.summarize_run import SummarizeRun, SummaryWork

ANSWER_SECONDS = 3.0
TRIES = 3


@dataclass(frozen=True, slots=True)
class Closing:
    """`summary` is None while it is computed; `share` of the answers are read."""

    summary: RunSummary | None
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class _Computing:
    work: SummaryWork
    task: asyncio.Task[RunSummary]


@dataclass(slots=True)
class _UnderWay:
    """The summaries that this process computes, and how often a store did not answer them."""

    computing: dict[tuple[str, int], _Computing] = field(default_factory=dict)
    failures: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))

    def drop(self, key: tuple[str, int]) -> None:
        self.computing.pop(key, None)
        self.failures.pop(key, None)


@dataclass(frozen=True, slots=True)
class CloseRun:
    records: RunRecordStore
    summaries: SummaryStore
    summarize_run: SummarizeRun
    under_way: _UnderWay = field(default_factory=_UnderWay)

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
        kept = await self.summaries.find(run_id, epoch)
        if kept is not None:
            self.under_way.drop((run_id, epoch))
            if state not in (None, record.state):
                await self.summaries.change_state(record.plan, kept, state)
            return Closing(kept)
        if not record.is_frozen or state not in (None, record.state):
            await self.records.freeze(record.plan, epoch, state, allow_partial=allow_partial)
        return await self._computed(record)

    async def _computed(self, record: RunRecord) -> Closing:
        """Waits a moment for the figures. What a store never answers is left out of the last try."""
        key = (record.plan.run_id, record.epoch)
        computing = self.under_way.computing.get(key) or self._start(record)
        await asyncio.wait((computing.task,), timeout=ANSWER_SECONDS)
        if not computing.task.done():
            return Closing(None, computing.work.share)
        self.under_way.computing.pop(key, None)
        try:
            summary = await computing.task
        except DependencyUnavailable:
            self.under_way.failures[key] += 1
            raise
        self.under_way.drop(key)
        return Closing(summary)

    def _start(self, record: RunRecord) -> _Computing:
        key = (record.plan.run_id, record.epoch)
        work = SummaryWork(is_last_try=self.under_way.failures[key] >= TRIES - 1)

        async def summed_up() -> RunSummary:
            summary = await self.summarize_run.summarize(record, work)
            return await self.summaries.keep(record.plan, summary)

        computing = _Computing(work, asyncio.create_task(summed_up(), name=f"close {key[0]}"))
        self.under_way.computing[key] = computing
        return computing
