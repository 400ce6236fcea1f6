"""Closing: frozen first, computed once, the same when repeated."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from proctor.values.run import RunState
from proctor.values.scoring import MetricUse, TaskGroup
from services.results.runs.errors import EpochNotOpen, EpochOver, RecordNotFound
from services.results.statistics.figure import Columns, Figure, figure_of
from services.results.summaries import summarize_run, task_columns
from services.results.summaries.show_summary import MIN_CACHED_SECONDS
from tests.fakes.results.close_recorder import NOON, Recorder, samples
from tests.fakes.results.recorded_run import (
    TEXT_SCORING,
    answered,
    batch,
    choice_sample,
    failed,
    logprob_answer,
    new_id,
    plan_of,
    scored,
)


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
    recorder.clock.seconds += MIN_CACHED_SECONDS
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
    for sample_set_id in sets:
        await recorder.stores.sample_sets.stage(
            sample_set_id, [choice_sample(at, sample_set_id) for at in range(20)]
        )
        await recorder.stores.sample_sets.commit(sample_set_id, 20)
    plan = plan_of([20, 20], sets)
    scoring = replace(TEXT_SCORING, metrics=(MetricUse("squad_f1"),))
    tasks = tuple(replace(task, scoring=scoring) for task in plan.tasks)
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
