"""A close is computed once, within bounds, and ended by a cancel: it always comes to an end."""

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from proctor.values.run import RunState
from services.common.errors import DependencyUnavailable
from services.common.threads.cancellable_threads import check_cancelled
from services.results.outcomes.timing_summary import TimingSummary
from services.results.runs.ports import ShardOfRun
from services.results.runs.run_plan import RecordedProgress, RunPlan
from services.results.statistics.figure import Columns, Figure, figure_of
from services.results.summaries import close_run, summarize_run, task_columns
from services.results.summaries.close_run import FULL_STARTS, MAX_STARTS, CloseFailed
from services.results.summaries.run_summary import RunSummary
from tests.fakes.eventually import eventually
from tests.fakes.results.close_recorder import Recorder, SlowOutcomes, samples
from tests.fakes.results.memory_results import (
    MemoryOutcomes,
    MemoryRunRecords,
    MemorySummaries,
)
from tests.fakes.results.recorded_run import (
    answered,
    batch,
)
from tests.fakes.results.stores import close_run_of


class AwayOutcomes(MemoryOutcomes):
    """Its times are never there."""

    async def timing(self, run_id: str) -> TimingSummary:  # noqa: ARG002  # the port's
        raise DependencyUnavailable(dependency="Postgres")


async def test_what_a_store_never_answers_is_left_out_in_the_end() -> None:
    recorder = Recorder()
    plan = await recorder.open(samples(2))
    await recorder.record([batch(plan.run_id, [answered(0), answered(1)])])
    close = close_run_of(replace(recorder.stores, outcomes=AwayOutcomes(recorder.rows)), recorder.clock).close
    for _ in range(FULL_STARTS - 1):
        with pytest.raises(DependencyUnavailable):
            await close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    summary = await close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    assert summary.tasks[0].figures["acc"].n == 2
    assert [problem.partition(" (")[0] for problem in summary.problems] == [
        "Times of answers cannot be computed: DependencyUnavailable"
    ]


async def test_a_close_that_takes_long_says_how_far_it_is_and_is_computed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(close_run, "ANSWER_SECONDS", 0.01)
    recorder = Recorder()
    plan = await recorder.open(samples(4))
    await recorder.record([batch(plan.run_id, [answered(at) for at in range(4)])])
    outcomes = SlowOutcomes(recorder.rows)
    closing = close_run_of(replace(recorder.stores, outcomes=outcomes), recorder.clock)
    for _ in range(3):
        far = await closing.close_run.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
        assert (far.summary, far.share) == (None, 0.25)
    outcomes.may_go_on.set()
    summary = await closing.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    assert summary.tasks[0].figures["acc"].n == 4


async def test_a_cancel_ends_the_figures_and_another_large_run_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(close_run, "ANSWER_SECONDS", 0.01)
    monkeypatch.setattr(summarize_run, "LARGE_RUN", 0)
    recorder = Recorder()
    plans = [await recorder.open(samples(4)) for _ in range(2)]
    for plan in plans:
        await recorder.record([batch(plan.run_id, [answered(at) for at in range(4)])])
    slow, other = plans
    is_ended, is_begun = threading.Event(), threading.Event()

    def endless(metric: str, columns: Columns, *more: Any) -> Figure:
        if is_begun.is_set():
            return figure_of(metric, columns, *more)
        is_begun.set()
        try:
            while True:
                check_cancelled()
                time.sleep(0.001)  # noqa: TID251  # stands for work of a thread
        finally:
            is_ended.set()

    monkeypatch.setattr(task_columns, "figure_of", endless)
    closing = close_run_of(recorder.stores, recorder.clock)

    async def begun() -> bool:
        far = await closing.close_run.close(slow.run_id, 1, RunState.COMPLETED, allow_partial=False)
        assert far.summary is None
        return is_begun.is_set()

    await eventually(begun, "its figures are computed")
    async with asyncio.timeout(10):
        cancelled = await closing.close(slow.run_id, 1, RunState.CANCELLED, allow_partial=True)
        assert await asyncio.to_thread(is_ended.wait, 10)
        figures = await closing.close(other.run_id, 1, RunState.COMPLETED, allow_partial=False)
    assert cancelled.problems == ("Figures were not computed: the run was cancelled while it was closing.",)
    assert (cancelled.answered, cancelled.tasks[0].figures["acc"]) == (4, Figure())
    assert (await recorder.stores.records.get(slow.run_id)).state is RunState.CANCELLED
    assert (figures.tasks[0].figures["acc"].n, figures.problems) == (4, ())
    await eventually(lambda: not closing.close_run.computing, "nothing is computed any more")
    assert not closing.close_run.summarize_run.large.locked()


async def test_figures_that_take_too_long_are_left_out_with_the_reason() -> None:
    recorder = Recorder()
    plan = await recorder.open(samples(4), groups=True)
    await recorder.record([batch(plan.run_id, [answered(at) for at in range(4)])])
    # They never come.
    stores = replace(recorder.stores, outcomes=SlowOutcomes(recorder.rows))
    close = close_run_of(stores, recorder.clock, limit_seconds=0.05).close
    async with asyncio.timeout(10):
        summary = await close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    assert (summary.answered, summary.tasks[0].figures["acc"], summary.reused_answers) == (4, Figure(), 0)
    [problem] = summary.problems
    assert problem == (
        f"{plan.tasks[0].task} and what comes after cannot be computed: closing took longer than 0.05 s"
        " (PROCTOR_RESULTS_CLOSE_TIMEOUT_SECONDS)."
    )


class AwaySummaries(MemorySummaries):
    """Keeps nothing."""

    async def keep(self, plan: RunPlan, summary: RunSummary, *, replaces: bool = False) -> RunSummary:  # noqa: ARG002  # the port's
        raise DependencyUnavailable(dependency="Postgres")


async def test_a_summary_that_can_never_be_stored_is_given_up() -> None:
    recorder = Recorder()
    plan = await recorder.open(samples(2))
    await recorder.record([batch(plan.run_id, [answered(0), answered(1)])])
    stores = replace(recorder.stores, summaries=AwaySummaries(recorder.rows))
    close = close_run_of(stores, recorder.clock).close
    for _ in range(MAX_STARTS):
        with pytest.raises(DependencyUnavailable):
            await close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    for _ in range(2):
        with pytest.raises(CloseFailed):
            await close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)


class AwayRecords(MemoryRunRecords):
    """Its counts are there from some call on."""

    calls = 0

    async def counts(self, runs: Sequence[RunPlan], shards: Sequence[ShardOfRun]) -> list[RecordedProgress]:
        self.calls += 1
        if self.calls <= FULL_STARTS:
            raise DependencyUnavailable(dependency="Postgres")
        return await super().counts(runs, shards)


async def test_a_run_whose_figures_fail_each_time_is_closed_without_them() -> None:
    recorder = Recorder()
    plan = await recorder.open(samples(2))
    await recorder.record([batch(plan.run_id, [answered(0), answered(1)])])
    stores = replace(recorder.stores, records=AwayRecords(recorder.rows))
    close = close_run_of(stores, recorder.clock).close
    for _ in range(FULL_STARTS):
        with pytest.raises(DependencyUnavailable):
            await close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    summary = await close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    assert summary.problems == (
        f"Figures were not computed: it failed {FULL_STARTS} times; the log of results has details.",
    )
    assert (summary.answered, summary.tasks[0].figures["acc"]) == (2, Figure())


async def test_a_close_that_no_caller_asks_for_again_leaves_nothing_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(close_run, "ANSWER_SECONDS", 0.01)
    recorder = Recorder()
    plan = await recorder.open(samples(4))
    await recorder.record([batch(plan.run_id, [answered(at) for at in range(4)])])
    outcomes = SlowOutcomes(recorder.rows)
    closing = close_run_of(replace(recorder.stores, outcomes=outcomes), recorder.clock).close_run
    await closing.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    [computing] = closing.computing.values()
    outcomes.may_go_on.set()
    await asyncio.wait((computing.task,))
    await asyncio.sleep(0)
    assert closing.computing == {}
    assert (await recorder.stores.summaries.find(plan.run_id, 1)) is not None
