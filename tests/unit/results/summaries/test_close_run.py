"""Closing and summing up: frozen first, computed once, the same when repeated."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from proctor.values.run import RunState
from proctor.values.scoring import MetricUse, TaskGroup
from services.common.errors import DependencyUnavailable
from services.results.outcomes.timing_summary import TimingSummary
from services.results.runs.errors import EpochNotOpen, EpochOver, RecordNotFound
from services.results.runs.run_plan import RunPlan
from services.results.samples.sample import StoredSample
from services.results.statistics.columns import ScoreChunk
from services.results.statistics.figure import Columns, Figure, figure_of
from services.results.summaries import close_run, summarize_run, task_columns
from services.results.summaries.close_run import TRIES
from services.results.summaries.ports import Stores
from services.results.summaries.show_summary import MIN_KEPT_SECONDS
from tests.fakes.results.memory_results import MemoryOutcomes, MemoryProgress, MemoryRows, memory_stores
from tests.fakes.results.recorded_run import (
    CHOICE_RECIPE,
    TEXT_RECIPE,
    answered,
    batch,
    choice_sample,
    failed,
    logprob_answer,
    new_id,
    plan_of,
    scored,
)
from tests.fakes.results.stores import close_run_of, record_outcomes_of, show_summary_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class HandClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return NOON

    def monotonic(self) -> float:
        return self.seconds


class Recorder:
    def __init__(self) -> None:
        self.rows = MemoryRows()
        self.stores: Stores = memory_stores(self.rows)
        self.clock = HandClock()
        self.record = record_outcomes_of(self.stores, MemoryProgress()).record
        self.summarize = show_summary_of(self.stores, self.clock).show
        self.close = close_run_of(self.stores, self.clock).close

    async def open(
        self,
        samples: list[StoredSample],
        rollouts: int = 1,
        metrics: tuple[MetricUse, ...] = CHOICE_RECIPE.metrics,
        *,
        groups: bool = False,
    ) -> RunPlan:
        set_id = new_id()
        await self.stores.sample_sets.stage(set_id, samples)
        await self.stores.sample_sets.commit(set_id, len(samples))
        plan = plan_of([len(samples)], [set_id], rollouts=rollouts)
        tasks = [replace(task, scoring=replace(CHOICE_RECIPE, metrics=metrics)) for task in plan.tasks]
        suite = (TaskGroup("toy", tuple(task.task for task in tasks)),) if groups else ()
        return (await self.stores.records.open(replace(plan, tasks=tuple(tasks), groups=suite), 1)).plan


def samples(count: int) -> list[StoredSample]:
    return [choice_sample(position) for position in range(count)]


async def test_a_run_stopped_before_its_new_epoch_was_opened_is_closed_in_it() -> None:
    recorder = Recorder()
    plan = await recorder.open(samples(2))
    await recorder.record([batch(plan.run_id, [answered(0)])])

    with pytest.raises(EpochNotOpen):
        await recorder.close(plan.run_id, 2, RunState.COMPLETED, allow_partial=False)
    summary = await recorder.close(plan.run_id, 2, RunState.COMPLETED, allow_partial=True)

    assert (summary.epoch, summary.is_partial) == (2, True)


async def test_the_summary_has_figures_counts_and_costs() -> None:
    recorder = Recorder()
    plan = await recorder.open(samples(4))
    await recorder.record([batch(plan.run_id, [answered(0), answered(1), answered(2), failed(3)])])
    summary = await recorder.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    [task] = summary.tasks
    assert (task.total, task.answered, task.failed) == (4, 3, 1)
    assert task.figures["acc"].mean == pytest.approx(2 / 3)
    assert task.figures["acc"].n == 3
    assert (summary.failures, summary.usage.prompt_tokens, summary.is_partial) == ({"timeout": 1}, 21, False)
    assert summary.computed_at == NOON


async def test_a_closed_run_gives_the_same_summary_again() -> None:
    recorder = Recorder()
    plan = await recorder.open(samples(2))
    await recorder.record([batch(plan.run_id, [answered(0)])])
    first = await recorder.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=True)
    await recorder.record([batch(plan.run_id, [answered(1)])])
    assert await recorder.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False) == first
    assert await recorder.summarize(plan.run_id) == first
    assert first.is_partial


async def test_a_close_that_died_after_the_freeze_is_taken_up_again() -> None:
    recorder = Recorder()
    plan = await recorder.open(samples(2))
    await recorder.record([batch(plan.run_id, [answered(0), answered(1)])])
    await recorder.stores.records.freeze(plan, 1, RunState.COMPLETED, allow_partial=False)
    summary = await recorder.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    assert summary.answered == 2


async def test_epochs_that_are_over_or_not_open_are_refused() -> None:
    recorder = Recorder()
    plan = await recorder.open(samples(2))
    await recorder.stores.records.open(plan, 2)
    with pytest.raises(EpochOver):
        await recorder.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=True)
    with pytest.raises(EpochNotOpen):
        await recorder.close(plan.run_id, 3, RunState.COMPLETED, allow_partial=False)
    with pytest.raises(RecordNotFound):
        await recorder.close(new_id(), 1, RunState.COMPLETED, allow_partial=True)


async def test_samples_of_one_passage_are_not_taken_for_independent() -> None:
    unranked, together = Recorder(), Recorder()
    alone = samples(8)
    paired = [replace(sample, cluster=f"passage {sample.position // 2}") for sample in alone]
    stderrs = []
    for recorder, rows in ((unranked, alone), (together, paired)):
        plan = await recorder.open(rows)
        # Both samples of a passage are right, or both are wrong.
        outcomes = [answered(at, (at + at // 2) % 2) for at in range(8)]
        await recorder.record([batch(plan.run_id, outcomes)])
        summary = await recorder.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
        stderrs.append(summary.tasks[0].figures["acc"].stderr)
    assert stderrs[0] is not None
    assert stderrs[1] is not None
    assert stderrs[1] > stderrs[0]


async def test_n_counts_samples_not_rollouts() -> None:
    recorder = Recorder()
    plan = await recorder.open(samples(3), rollouts=2)
    outcomes = [
        answered(at, at % 2 * (1 - rollout), rollout=rollout) for at in range(3) for rollout in (0, 1)
    ]
    await recorder.record([batch(plan.run_id, outcomes)])
    figure = (
        (await recorder.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False))
        .tasks[0]
        .figures["acc"]
    )
    assert figure.n == 3
    assert figure.mean == pytest.approx(5 / 6)


async def test_a_macro_f1_is_over_the_choices_of_the_task_whichever_were_right() -> None:
    recorder = Recorder()
    three = [
        replace(sample, target=replace(sample.target, choices=(" even", " odd", " neither")))
        for sample in samples(4)
    ]
    plan = await recorder.open(three, metrics=(MetricUse("f1", '{"average": "macro"}'),))
    right = [answered(at) for at in range(4)]
    taken = [logprob_answer((-1.0 - at % 2, -2.0 + at % 2, -9.0)) for at in range(4)]
    await recorder.record(
        [batch(plan.run_id, [replace(one, result=r) for one, r in zip(right, taken, strict=True)])]
    )
    assert (await recorder.summarize(plan.run_id)).tasks[0].figures["f1"].mean == pytest.approx(2 / 3)


async def test_a_task_without_answers_has_no_figure() -> None:
    recorder = Recorder()
    plan = await recorder.open(samples(2))
    figure = (await recorder.summarize(plan.run_id)).tasks[0].figures["acc"]
    assert (figure.mean, figure.n) == (None, 0)


async def test_partial_figures_are_kept_for_a_moment() -> None:
    recorder = Recorder()
    plan = await recorder.open(samples(2))
    await recorder.record([batch(plan.run_id, [answered(0)])])
    assert (await recorder.summarize(plan.run_id)).answered == 1
    await recorder.record([batch(plan.run_id, [answered(1)])])
    assert (await recorder.summarize(plan.run_id)).answered == 1
    recorder.clock.seconds += MIN_KEPT_SECONDS
    assert (await recorder.summarize(plan.run_id)).answered == 2


async def test_figures_are_computed_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[int] = set()

    def noting_thread(metric: str, columns: Columns, *more: Any) -> Figure:
        threads.add(threading.get_ident())
        return figure_of(metric, columns, *more)

    monkeypatch.setattr(task_columns, "figure_of", noting_thread)
    recorder = Recorder()
    await recorder.summarize((await recorder.open(samples(2))).run_id)
    assert threads
    assert threading.get_ident() not in threads


async def test_a_figure_that_cannot_be_computed_is_named_and_stops_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(metric: str, columns: Columns, *more: Any) -> Figure:
        if metric == "acc":
            raise ZeroDivisionError
        return figure_of(metric, columns, *more)

    monkeypatch.setattr(task_columns, "figure_of", broken)
    recorder = Recorder()
    plan = await recorder.open(samples(4), metrics=(MetricUse("acc"), MetricUse("mcc")))
    await recorder.record([batch(plan.run_id, [answered(at, at % 2) for at in range(4)])])
    summary = await recorder.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    figures = summary.tasks[0].figures
    assert (figures["acc"], figures["mcc"].n) == (Figure(), 4)
    [problem] = summary.problems
    assert problem.startswith(f"acc of {plan.tasks[0].task} cannot be computed: ZeroDivisionError (incident ")


async def test_a_group_that_cannot_be_summed_up_is_named_and_closes_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(summarize_run, "group_summary", broken)
    recorder = Recorder()
    plan = await recorder.open(samples(4), groups=True)
    await recorder.record([batch(plan.run_id, [answered(at, at % 2) for at in range(4)])])
    summary = await recorder.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    assert (summary.groups[0].figures, summary.tasks[0].figures["acc"].n) == ({}, 4)
    assert summary.problems[0].startswith("Figures of toy cannot be computed: ZeroDivisionError")


class AwayOutcomes(MemoryOutcomes):
    """Its times are never there."""

    async def timing(self, run_id: str) -> TimingSummary:  # noqa: ARG002  # the port's
        raise DependencyUnavailable(dependency="Postgres")


async def test_what_a_store_never_answers_is_left_out_in_the_end() -> None:
    recorder = Recorder()
    plan = await recorder.open(samples(2))
    await recorder.record([batch(plan.run_id, [answered(0), answered(1)])])
    close = close_run_of(replace(recorder.stores, outcomes=AwayOutcomes(recorder.rows)), recorder.clock).close
    for _ in range(TRIES - 1):
        with pytest.raises(DependencyUnavailable):
            await close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    summary = await close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    assert summary.tasks[0].figures["acc"].n == 2
    assert [problem.partition(" (")[0] for problem in summary.problems] == [
        "Times of answers cannot be computed: DependencyUnavailable"
    ]


class SlowOutcomes(MemoryOutcomes):
    """Its scores come when the test says so."""

    def __init__(self, rows: MemoryRows) -> None:
        super().__init__(rows)
        self.may_go_on = asyncio.Event()

    async def scores(self, run_id: str, window: range, metrics: Sequence[str]) -> AsyncIterator[ScoreChunk]:
        async for chunk in super().scores(run_id, window, metrics):
            yield chunk
            await self.may_go_on.wait()


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
    # The state of a cancel meanwhile counts.
    assert (
        await closing.close_run.close(plan.run_id, 1, RunState.CANCELLED, allow_partial=True)
    ).share == 0.25
    outcomes.may_go_on.set()
    summary = await closing.close(plan.run_id, 1, RunState.CANCELLED, allow_partial=True)
    assert summary.tasks[0].figures["acc"].n == 4
    assert (await recorder.stores.records.get(plan.run_id)).state is RunState.CANCELLED


async def test_a_cancel_that_comes_after_the_close_replaces_its_state() -> None:
    recorder = Recorder()
    plan = await recorder.open(samples(2))
    await recorder.record([batch(plan.run_id, [answered(0), answered(1)])])
    first = await recorder.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    assert await recorder.close(plan.run_id, 1, RunState.CANCELLED, allow_partial=True) == first
    assert (await recorder.stores.records.get(plan.run_id)).state is RunState.CANCELLED


@pytest.mark.parametrize("score", [0.8, 2 / 3])
async def test_a_suite_whose_graded_scores_are_all_the_same_is_closed_with_its_figures(score: float) -> None:
    recorder = Recorder()
    sets = [new_id(), new_id()]
    for set_id in sets:
        await recorder.stores.sample_sets.stage(set_id, [choice_sample(at, set_id) for at in range(20)])
        await recorder.stores.sample_sets.commit(set_id, 20)
    plan = plan_of([20, 20], sets)
    recipe = replace(TEXT_RECIPE, metrics=(MetricUse("squad_f1"),))
    tasks = tuple(replace(task, scoring=recipe) for task in plan.tasks)
    plan = replace(plan, tasks=tasks, groups=(TaskGroup("toy", tuple(task.task for task in tasks)),))
    await recorder.stores.records.open(plan, 1)
    rows = [scored(plan.run_id, answered(at), task_index=at // 20) for at in range(40)]
    varying = [replace(row, scores={"squad_f1": at % 5 / 7}) for at, row in enumerate(rows[20:])]
    same = [replace(row, scores={"squad_f1": score}) for row in rows[:20]]
    await recorder.stores.outcomes.record([*same, *varying])
    summary = await recorder.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    figure, suite = summary.tasks[0].figures["squad_f1"], summary.groups[0].figures["squad_f1"]
    assert (figure.mean, figure.stderr, figure.ci_low) == (score, 0.0, None)
    assert (suite.n, suite.ci_low, summary.problems) == (40, None, ())


async def test_a_close_that_nobody_asks_for_again_leaves_nothing_in_memory(
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
    assert (closing.computing, closing.failures) == ({}, {})
    assert (await recorder.stores.summaries.find(plan.run_id, 1)) is not None


async def test_closes_that_failed_and_are_not_asked_for_again_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(close_run, "MAX_REMEMBERED_FAILURES", 2)
    recorder = Recorder()
    away = AwayOutcomes(recorder.rows)
    closing = close_run_of(replace(recorder.stores, outcomes=away), recorder.clock).close_run
    plans = [await recorder.open(samples(2)) for _ in range(5)]
    for plan in plans:
        with pytest.raises(DependencyUnavailable):
            await closing.close(plan.run_id, 1, RunState.CANCELLED, allow_partial=True)
    assert len(closing.failures) <= 3
    assert (plans[-1].run_id, 1) in closing.failures
