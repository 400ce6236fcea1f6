"""Closes an epoch of a run: freezes it, computes and stores its summary. Later outcomes are ignored."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from proctor.values.run import RunState
from proctor.values.usage import NO_TOKENS, TokenUsage
from services.common.errors import DependencyUnavailable, DomainError, ErrorKind
from services.common.structured_logs import get_logger
from services.results.leases.hold_lease import LEASE_SECONDS, LeaseLost, hold_lease
from services.results.leases.lease import Lease, Work, WorkKind
from services.results.leases.ports import LeaseStore
from services.results.metrics import CLOSE_SECONDS
from services.results.runs.errors import RunNotFrozen
from services.results.runs.open_run import check_epoch
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunRecord
from services.results.summaries.ports import SummaryStore
from services.results.summaries.run_summary import RunSummary
from services.results.summaries.summarize_run import SummarizeRun
from services.results.summaries.summary_work import SummaryWork

# Small runs are closed within one call; for others the leader shows the share and calls again.
ANSWER_SECONDS = 3.0
# An outage passes within two starts. A third failure comes from a query that never ends, or that ends its
# process.
FULL_STARTS = 3
# A close without figures rarely fails. One that was started more often than this gets no summary.
MAX_STARTS = 6

log = get_logger()


class CloseFailed(DomainError, kind=ErrorKind.CONFLICT):
    """Closing run {run_id} failed {starts} times (see the log of results). Retry the run."""


@dataclass(frozen=True, slots=True)
class Closing:
    """`summary` is None while it is computed; `share` of the answers are read."""

    summary: RunSummary | None
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class _Computing:
    summary_work: SummaryWork
    task: asyncio.Task[RunSummary]


@dataclass(frozen=True, slots=True)
class CloseRun:
    """`computing`: summaries that this replica computes. `limit_seconds`: how long one may take."""

    records: RunRecordStore
    summaries: SummaryStore
    leases: LeaseStore
    summarize_run: SummarizeRun
    limit_seconds: float
    computing: dict[Work, _Computing] = field(default_factory=dict)

    async def close(
        self,
        run_id: str,
        epoch: int,
        state: RunState | None,
        *,
        allow_partial: bool,
        unscored: TokenUsage = NO_TOKENS,
    ) -> Closing:
        """Returns the summary, or how far it is; a repeated call returns that of the first.

        `unscored` tokens are in no outcome.

        The rows cannot change between the freeze and the figures, so no lock is held while they are computed,
        which continues without a caller, at one replica. A state that differs from the stored one replaces
        it, also in leaderboards and histories; where it is that of a cancelled run, figures that are still
        computed are given up. Raises CloseFailed in the end.
        """
        record = await self.records.get(run_id)
        if allow_partial and epoch > record.epoch:
            # A run that is stopped before its new epoch was opened is closed in it all the same.
            record = await self.records.open(record.plan, epoch)
        check_epoch(record, epoch)
        is_other_state = record.is_frozen and state not in (None, record.state)
        # Whether the history may have another state.
        may_differ = is_other_state
        kept = await self.summaries.find(run_id, epoch)
        if kept is None:
            if is_other_state and state is RunState.CANCELLED:
                await self._withdraw(_work(record))
            if not record.is_frozen or is_other_state:
                # Waits for batches under way, which hold a share lock on the record.
                await self.records.freeze(record.plan, epoch, state, allow_partial=allow_partial)
                # A call beside this one may have stored its summary, with its state, before this freeze.
                may_differ = is_other_state or _work(record) in self.computing
            closing = await self._computed(record, unscored)
        else:
            closing = Closing(kept)
        if closing.summary is not None and may_differ and state is not None:
            # Also of a summary that was stored while this call waited for the record.
            await self.summaries.change_state(record.plan, closing.summary, state)
        return closing

    async def close_again(self, run_id: str) -> Closing:
        """Computes what the close of a run left out; a run that has all its figures keeps its summary.

        The summary is replaced at the end, so that nothing is lost if this is cut short. Raises RunNotFrozen.
        """
        record = await self.records.get(run_id)
        if not record.is_frozen:
            raise RunNotFrozen(run_id=run_id)
        kept = await self.summaries.find(run_id, record.epoch)
        if kept is not None and not kept.problems:
            return Closing(kept)
        await self.leases.reset(_work(record))
        unscored = NO_TOKENS if kept is None else kept.unscored
        return await self._computed(record, unscored, is_again=True)

    async def stop(self) -> None:
        """Ends what is computed, as if it had not been begun: another replica need not wait for it."""
        stopped = dict(self.computing)
        for computing in stopped.values():
            computing.task.cancel()
        if stopped:
            await asyncio.wait([computing.task for computing in stopped.values()], timeout=ANSWER_SECONDS)
        for work in stopped:
            with suppress(DependencyUnavailable, TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self.leases.release(work, counts=False)

    async def _withdraw(self, work: Work) -> None:
        await self.leases.withdraw(work)
        computing = self.computing.get(work)
        if computing is not None:
            # Another replica ends its computation when it renews its lease.
            computing.task.cancel()
            await asyncio.wait((computing.task,), timeout=ANSWER_SECONDS)

    async def _computed(self, record: RunRecord, unscored: TokenUsage, *, is_again: bool = False) -> Closing:
        """Waits a moment for the figures, which are computed here, or by the replica that holds the lease."""
        work = _work(record)
        computing = self.computing.get(work)
        if computing is None:
            lease = await self.leases.acquire(work, LEASE_SECONDS)
            if lease is None:
                return Closing(None, await self.leases.share(work))
            computing = self._start(record, lease, unscored, is_again=is_again)
        # `wait` leaves the task running: the next call finds it.
        await asyncio.wait((computing.task,), timeout=ANSWER_SECONDS)
        if not computing.task.done() or computing.task.cancelled():
            return Closing(None, computing.summary_work.share)
        return Closing(computing.task.result())

    def _start(self, record: RunRecord, lease: Lease, unscored: TokenUsage, *, is_again: bool) -> _Computing:
        summary_work = SummaryWork(
            is_last_start=lease.starts >= FULL_STARTS,
            limit_seconds=self.limit_seconds,
            unscored=unscored,
        )
        if lease.is_withdrawn:
            summary_work.skip("Figures were not computed: the run was cancelled while it was closing.")
        elif lease.starts > FULL_STARTS:
            summary_work.skip(
                f"Figures were not computed: it failed {FULL_STARTS} times; the log of results has details."
            )
        computing = self._compute(record, lease, summary_work, is_again=is_again)
        task = asyncio.create_task(computing, name=f"close {lease.work.run_id}")
        self.computing[lease.work] = _Computing(summary_work, task)
        task.add_done_callback(lambda _: self._forget(lease.work, task))
        return self.computing[lease.work]

    async def _compute(
        self, record: RunRecord, lease: Lease, summary_work: SummaryWork, *, is_again: bool
    ) -> RunSummary:
        """Cancelled where the lease is taken away. A failure counts as a start."""
        work = lease.work
        try:
            async with hold_lease(self.leases, work, lambda: summary_work.share):
                kept = await self._kept_summary(record, lease, summary_work, is_again=is_again)
        except LeaseLost as error:
            raise asyncio.CancelledError from error
        except Exception as error:
            log.warning("run not closed", run_id=work.run_id, starts=lease.starts, error=repr(error))
            with suppress(DependencyUnavailable):
                await self.leases.release(work, counts=True)
            raise
        with suppress(DependencyUnavailable):
            await self.leases.delete(work)
        return kept

    async def _kept_summary(
        self, record: RunRecord, lease: Lease, summary_work: SummaryWork, *, is_again: bool
    ) -> RunSummary:
        if lease.starts > MAX_STARTS:
            raise CloseFailed(run_id=record.plan.run_id, starts=lease.starts - 1)
        with CLOSE_SECONDS.time():
            summary = await self.summarize_run.summarize(record, summary_work)
            return await self.summaries.keep(record.plan, summary, replaces=is_again)

    def _forget(self, work: Work, task: asyncio.Task[RunSummary]) -> None:
        """The next call finds the summary, or the starts, in the store."""
        if not task.cancelled():
            # A failure for which no call waited was logged.
            task.exception()
        if work in self.computing and self.computing[work].task is task:
            del self.computing[work]


def _work(record: RunRecord) -> Work:
    return Work(WorkKind.CLOSE, record.plan.run_id, record.epoch)
