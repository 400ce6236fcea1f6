"""Figures of a group of tasks; the expected numbers are lm-evaluation-harness 0.4.13's own."""

import math

import numpy as np
import pytest

from proctor.values.scoring import GroupMetric, TaskGroup
from services.results.statistics.figure import Figure, figure_of
from services.results.statistics.metric_names import SCORE
from services.results.statistics.sample_scores import ScoreColumns
from services.results.summaries.group_figures import group_summary

LARGE = Figure(0.8, 0.02, 0.02, 0.71, 0.87, 100, "wilson")
SMALL = Figure(0.6, 0.03, 0.03, 0.5, 0.7, 50, "wilson")
POOLED_ERROR = 0.01666441426221464  # √((99·100·0.02² + 49·50·0.03²) / 148 / 150)


def summed_up(metric: str, *figures: Figure, is_weighted: bool = True) -> Figure:
    names = [f"t{index}" for index in range(len(figures))]
    group = TaskGroup("suite", tuple(names), (GroupMetric(metric, is_weighted),))
    by_task = {name: {metric: figure} for name, figure in zip(names, figures, strict=True)}
    return group_summary(group, by_task).figures[metric]


def test_a_weighted_figure_has_the_mean_and_the_error_of_the_reference() -> None:
    figure = summed_up("acc", LARGE, SMALL)
    assert figure.mean == pytest.approx(0.7333333333333333, abs=1e-15)
    assert figure.stderr == pytest.approx(POOLED_ERROR, abs=1e-15)
    assert figure.n == 150


def test_an_unweighted_figure_has_the_mean_and_the_error_of_the_reference() -> None:
    figure = summed_up("acc", LARGE, SMALL, is_weighted=False)
    assert figure.mean == pytest.approx(0.7)
    assert figure.stderr == pytest.approx(math.sqrt(0.02**2 + 0.03**2) / 2, abs=1e-15)


def test_a_group_of_one_task_has_the_figure_of_the_task() -> None:
    assert summed_up("acc", LARGE) == LARGE
    assert summed_up("acc", LARGE, is_weighted=False) == LARGE


def test_the_score_is_the_plain_mean_of_what_each_task_names_first() -> None:
    by_task = {"t0": {"mcc": LARGE, "acc": SMALL}, "t1": {"acc": SMALL}}
    figures = group_summary(TaskGroup("suite", ("t0", "t1")), by_task).figures
    # The headline figure is the first: the tasks have no main metric in common.
    assert list(figures) == [SCORE, "mcc", "acc"]
    assert figures[SCORE].mean == pytest.approx(0.7)
    assert figures["mcc"] == LARGE
    assert figures["acc"].n == 100


def test_a_metric_of_which_less_is_better_is_part_of_the_score_only_where_all_are_such() -> None:
    by_task = {"t0": {"acc": LARGE}, "t1": {"perplexity": SMALL}}
    group = TaskGroup("suite", ("t0", "t1"))
    assert group_summary(group, by_task, {"perplexity"}).figures[SCORE] == LARGE
    assert group_summary(group, by_task, {"perplexity", "acc"}).figures[SCORE].mean == pytest.approx(0.7)


def test_every_filter_of_a_metric_is_summed_up_by_itself() -> None:
    by_task = {"t0": {"exact_match,strict": LARGE, "exact_match,flexible": SMALL, "exact": LARGE}}
    group = TaskGroup("suite", ("t0",), (GroupMetric("exact_match"),))
    figures = group_summary(group, by_task).figures
    assert list(figures) == ["exact_match,strict", "exact_match,flexible", SCORE]


def test_tasks_that_were_not_run_are_named_and_left_out() -> None:
    summary = group_summary(TaskGroup("suite", ("t0", "t1", "t2")), {"t1": {"acc": LARGE}})
    assert (summary.tasks, summary.missing_tasks) == (("t1",), ("t0", "t2"))
    assert group_summary(TaskGroup("suite", ("t0",)), {}).figures == {}


@pytest.mark.parametrize("undefined", [Figure(), Figure(mean=0.5, n=0)])
def test_a_group_with_an_undefined_figure_is_undefined(undefined: Figure) -> None:
    assert summed_up("acc", LARGE, undefined) == Figure(n=100)


def test_where_a_task_has_no_interval_the_group_has_none() -> None:
    """Scores that do not vary do not say how far their mean may be off."""
    constant = figure_of("squad_f1", ScoreColumns(np.full(5, 0.5)))
    figure = summed_up("squad_f1", constant, figure_of("squad_f1", ScoreColumns(np.array([0.1, 0.9]))))
    assert figure.stderr is not None
    assert (figure.ci_low, figure.interval_method) == (None, "")


def test_a_figure_without_an_error_leaves_the_group_without_one() -> None:
    figure = summed_up("acc", LARGE, Figure(mean=1.0, std=0.1, n=1))
    assert (figure.stderr, figure.ci_low, figure.interval_method) == (None, None, "")
    assert figure.std is not None
    assert summed_up("acc", Figure(1.0, 0.1, n=1), Figure(0.0, 0.1, n=1)).std is None
