"""Scores that do not vary have no interval and stop no group, whatever their sums are rounded to."""

import numpy as np
import pytest

from proctor.values.scoring import TaskGroup
from services.results.statistics.figure import Figure, figure_of
from services.results.statistics.metric_names import SCORE
from services.results.statistics.sample_scores import ScoreColumns
from services.results.summaries.group_figures import group_summary

VARYING = figure_of("squad_f1", ScoreColumns(np.array([0.1, 0.9, 0.4, 0.6])))


def constant(value: float, count: int, **keys: np.typing.NDArray[np.int64]) -> Figure:
    return figure_of("squad_f1", ScoreColumns(np.full(count, value), **keys))


@pytest.mark.parametrize("count", range(2, 60))
@pytest.mark.parametrize("value", [0.8, 2 / 3, 0.1, 1e-9, 73.3])
def test_equal_scores_have_their_value_as_the_mean_and_no_interval(value: float, count: int) -> None:
    figure = constant(value, count)
    assert (figure.mean, figure.stderr, figure.std) == (value, 0.0, 0.0)
    assert (figure.ci_low, figure.ci_high, figure.interval_method) == (None, None, "")


@pytest.mark.parametrize("count", [20, 23, 24, 1319])
def test_a_group_with_a_task_of_equal_scores_has_figures_and_no_interval(count: int) -> None:
    tasks = {"constant": {"squad_f1": constant(0.8, count)}, "varying": {"squad_f1": VARYING}}
    figures = group_summary(TaskGroup("suite", tuple(tasks)), tasks).figures
    for figure in (figures["squad_f1"], figures[SCORE]):
        assert figure.mean is not None
        assert figure.stderr is not None
        assert (figure.ci_low, figure.interval_method) == (None, "")


def test_passages_that_are_alike_have_no_error_though_their_scores_differ() -> None:
    """Each passage has the same two scores: between passages nothing varies."""
    values, passages = np.tile([0.1, 0.7], 21), np.repeat(np.arange(21), 2)
    figure = figure_of("squad_f1", ScoreColumns(values, clusters=passages))
    assert (figure.stderr, figure.ci_low) == (0.0, None)


def one_of_three_right(samples: int) -> Figure:
    positions, rollouts = np.repeat(np.arange(samples), 3), np.tile(np.arange(3), samples)
    return figure_of("acc", ScoreColumns(np.tile([1.0, 0.0, 0.0], samples), positions, rollouts))


@pytest.mark.parametrize("samples", range(2, 60))
def test_the_interval_of_samples_whose_rollouts_are_alike_narrows_and_jumps_nowhere(samples: int) -> None:
    figure, fewer = one_of_three_right(samples + 1), one_of_three_right(samples)
    assert figure.stderr == fewer.stderr == 0.0
    width, wider = ((one.ci_high or 0) - (one.ci_low or 0) for one in (figure, fewer))
    assert 0.5 * wider < width < wider
