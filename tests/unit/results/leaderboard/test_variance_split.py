"""What a figure scatters by, against sums written out by cell, and by drawing runs again."""

import math

import numpy as np
import pytest
from scipy import stats

from services.results.statistics.columns import Array
from services.results.statistics.variance_split import RepeatedTask, VarianceSplit, split_variance

# Standard deviations: of rows, of rollouts in a row, of runs.
ROW, ROLLOUT, RUN = 0.4, 0.3, 0.02


def drawn(generator: np.random.Generator, runs: int, rows: int, rollouts: int, run_std: float = RUN) -> Array:
    """Scores (runs, rows, rollouts)."""
    of_rows = generator.normal(0.6, ROW, (1, rows, 1))
    of_runs = generator.normal(0, run_std, (runs, 1, 1))
    return of_rows + of_runs + generator.normal(0, ROLLOUT, (runs, rows, rollouts))


def task_of(scores: Array, weight: float = 1.0) -> RepeatedTask:
    means = scores.mean(axis=2)
    squares = np.square(scores - means[:, :, np.newaxis]).sum(axis=2)
    counts = np.full(means.shape, scores.shape[2], dtype=np.int64)
    return RepeatedTask(means, counts, squares, weight)


def split_of(*tasks: RepeatedTask) -> VarianceSplit:
    found = split_variance(tasks)
    assert found is not None
    return found


def test_parts_are_those_of_a_two_way_analysis_of_variance() -> None:
    """Sums of squares written out by cell, with mean squares solved for their expectations."""
    scores = drawn(np.random.default_rng(1), 3, 50, 2)
    runs, rows, rollouts = scores.shape
    total, cells = scores.mean(), scores.mean(axis=2)
    of_run = rows * rollouts * sum((scores[r].mean() - total) ** 2 for r in range(runs)) / (runs - 1)
    error = sum(
        (scores[r, i, k] - cells[r, i]) ** 2
        for r in range(runs)
        for i in range(rows)
        for k in range(rollouts)
    ) + rollouts * sum(
        (cells[r, i] - scores[r].mean() - scores[:, i].mean() + total) ** 2
        for r in range(runs)
        for i in range(rows)
    )
    degrees = runs * rows * (rollouts - 1) + (runs - 1) * (rows - 1)
    error /= degrees
    of_row = runs * rollouts * sum((scores[:, i].mean() - total) ** 2 for i in range(rows)) / (rows - 1)
    found = split_of(task_of(scores))
    assert found.rollout == pytest.approx(math.sqrt(error / rows))
    assert found.run == pytest.approx(math.sqrt(max(0.0, of_run - error) / (rows * rollouts)))
    assert found.sample == pytest.approx(math.sqrt((of_row - error) / (runs * rollouts) / rows))
    assert found.run_p_value == pytest.approx(stats.f(runs - 1, degrees).sf(of_run / error))


def test_one_run_of_several_rollouts_has_the_variance_within_rows_of_miller() -> None:
    scores = drawn(np.random.default_rng(2), 1, 300, 4)
    found = split_of(task_of(scores))
    assert found.rollout == pytest.approx(math.sqrt(scores[0].var(axis=1, ddof=1).mean() / 300))
    assert (found.run, found.run_p_value) == (None, None)
    quantile = stats.t(300 * 3).ppf(0.975)
    assert found.noise_floor == pytest.approx(quantile * math.sqrt(2) * found.rollout)


def test_repeated_runs_of_one_rollout_tell_rollouts_from_runs() -> None:
    generator = np.random.default_rng(3)
    found = [split_of(task_of(drawn(generator, 4, 400, 1))) for _ in range(300)]
    assert np.mean([one.rollout**2 for one in found]) == pytest.approx(ROLLOUT**2 / 400, rel=0.02)
    assert np.mean([one.sample**2 for one in found]) == pytest.approx(ROW**2 / 400, rel=0.05)
    # A little more: what would be below 0 counts as 0.
    assert np.mean([(one.run or 0.0) ** 2 for one in found]) == pytest.approx(RUN**2, rel=0.2)


@pytest.mark.parametrize(("runs", "least"), [(2, 0.86), (5, 0.93)])
def test_two_runs_differ_by_less_than_the_floor_in_95_percent_of_repetitions(runs: int, least: float) -> None:
    """Where runs are as far apart as rollouts put them: with two of them, one degree of freedom tells so."""
    generator, below = np.random.default_rng(4), 0
    spread = math.sqrt(2 * (RUN**2 + ROLLOUT**2 / 200))
    for _ in range(1_000):
        floor = split_of(task_of(drawn(generator, runs, 200, 1))).noise_floor
        below += abs(generator.normal(0, spread)) < floor
    assert least <= below / 1_000 <= 0.98


def test_runs_that_only_scatter_by_rollouts_are_found_apart_in_5_percent() -> None:
    generator = np.random.default_rng(5)
    p_values = [split_of(task_of(drawn(generator, 3, 100, 2, 0.0))).run_p_value or 0.0 for _ in range(1_000)]
    assert 0.03 <= np.mean(np.array(p_values) <= 0.05) <= 0.07


def test_tasks_add_up_by_the_squares_of_their_weights() -> None:
    generator = np.random.default_rng(6)
    one, other = drawn(generator, 3, 60, 1, 0.0), drawn(generator, 3, 90, 1, 0.0)
    both = split_of(task_of(one, 0.4), task_of(other, 0.6))
    parts = split_of(task_of(one)), split_of(task_of(other))
    assert both.rollout == pytest.approx(math.hypot(0.4 * parts[0].rollout, 0.6 * parts[1].rollout))
    assert both.sample == pytest.approx(math.hypot(0.4 * parts[0].sample, 0.6 * parts[1].sample))


def test_nothing_is_told_apart_where_nothing_was_asked_twice() -> None:
    scores = drawn(np.random.default_rng(7), 1, 20, 1)
    assert split_variance([task_of(scores)]) is None
    assert split_variance([]) is None
    assert split_variance([task_of(scores[:, :1])]) is None
    same = np.repeat(scores, 2, axis=0)
    found = split_of(task_of(same))
    assert (found.rollout, found.run, found.run_p_value) == (0.0, 0.0, None)
    assert found.noise_floor == 0.0
