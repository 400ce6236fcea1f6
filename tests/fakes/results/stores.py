"""The stores of results in Postgres, and use cases over whichever stores a test has."""

import asyncio
from dataclasses import dataclass

from proctor.values.run import RunState
from proctor.values.usage import NO_TOKENS, TokenUsage
from services.common.clock import Clock, SystemClock
from services.common.postgres import PostgresSession
from services.common.sandboxes.task_code.ports import CodeRunner
from services.results.leaderboard.postgres import add_closed_run
from services.results.leases.ports import LeaseStore
from services.results.leases.postgres import PostgresLeases
from services.results.outcomes.ports import ProgressPublisher
from services.results.outcomes.postgres import PostgresOutcomes
from services.results.outcomes.record_outcomes import RecordOutcomes
from services.results.runs.postgres import PostgresRunRecords
from services.results.samples.postgres import PostgresSampleSets
from services.results.scoring.ports import AnswerScorer
from services.results.summaries.close_run import CloseRun
from services.results.summaries.ports import Stores
from services.results.summaries.postgres import PostgresSummaries
from services.results.summaries.run_summary import RunSummary
from services.results.summaries.show_summary import PartialSummaries, ShowSummary
from services.results.summaries.summarize_run import SummarizeRun
from tests.fakes.results.inline_scorer import InlineScorer
from tests.fakes.results.memory_leases import MemoryLeases
from tests.fakes.results.recorded_run import new_id


def postgres_stores(session: PostgresSession) -> Stores:
    return Stores(
        records=PostgresRunRecords(session),
        sample_sets=PostgresSampleSets(session),
        outcomes=PostgresOutcomes(session, SystemClock()),
        summaries=PostgresSummaries(session=session, add_closed_run=add_closed_run),
    )


def record_outcomes_of(
    stores: Stores, progress: ProgressPublisher, scorer: AnswerScorer | None = None
) -> RecordOutcomes:
    return RecordOutcomes(
        records=stores.records,
        sample_sets=stores.sample_sets,
        outcomes=stores.outcomes,
        progress=progress,
        scorer=scorer or InlineScorer(),
    )


@dataclass(frozen=True, slots=True)
class ClosingUntilDone:
    """Closes runs as the scheduler does: again and again until the summary is there."""

    close_run: CloseRun

    async def close(
        self,
        run_id: str,
        epoch: int,
        state: RunState | None,
        *,
        allow_partial: bool,
        unscored: TokenUsage = NO_TOKENS,
    ) -> RunSummary:
        summary = None
        while summary is None:
            closing = await self.close_run.close(
                run_id, epoch, state, allow_partial=allow_partial, unscored=unscored
            )
            summary = closing.summary
            # Another replica may be at work.
            await asyncio.sleep(0)
        return summary


def close_run_of(
    stores: Stores,
    clock: Clock | None = None,
    *,
    leases: LeaseStore | None = None,
    limit_seconds: float = 60.0,
) -> ClosingUntilDone:
    """One replica, as a process of the service is."""
    return ClosingUntilDone(
        CloseRun(
            records=stores.records,
            summaries=stores.summaries,
            leases=leases or _leases_of(stores),
            summarize_run=SummarizeRun(stores=stores, clock=clock or SystemClock()),
            limit_seconds=limit_seconds,
        )
    )


def _leases_of(stores: Stores) -> LeaseStore:
    if isinstance(stores.summaries, PostgresSummaries):
        return PostgresLeases(session=stores.summaries._session, holder=new_id())
    return MemoryLeases()


def show_summary_of(
    stores: Stores, clock: Clock | None = None, *, code_runner: CodeRunner | None = None
) -> ShowSummary:
    clock = clock or SystemClock()
    summarize = SummarizeRun(stores=stores, clock=clock, code_runner=code_runner)
    partials = PartialSummaries(summarize.summarize, clock)
    return ShowSummary(records=stores.records, summaries=stores.summaries, partials=partials)
