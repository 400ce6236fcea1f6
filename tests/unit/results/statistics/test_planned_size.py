"""What rollouts bring to a difference, and how many rows and rollouts show one."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from services.results.statistics.columns import Array
from services.results.statistics.paired.benchmark_difference import benchmark_difference
from services.results.statistics.paired.difference_estimate import DifferenceEstimate, with_interval
from services.results.statistics.paired.mean_difference import (
    difference_of_means,
    observed_means,
    stderr_of_mean,
)
from services.results.statistics.paired.pairs import unit_sums
from services.results.statistics.paired.planned_size import SizeGoal, planned_sizes
from services.results.statistics.paired.rollout_noise import RolloutNoise, rollout_noise
from tests.fakes.results.paired_samples import right_or_wrong, scores_of

BETWEEN, WITHIN = 0.2, 0.5


def compared(
    generator: np.random.Generator, rows: int, rollouts: int, gain: float = 0.0
) -> DifferenceEstimate:
    """Two runs whose rows differ by `gain` on average, and whose rollouts scatter by `WITHIN` together."""
    level, gains = generator.random(rows), generator.normal(gain, BETWEEN, rows)
    spread = WITHIN / np.sqrt(2)
    first = (level + gains)[:, np.newaxis] + generator.normal(0, spread, (rows, rollouts))
    second = level[:, np.newaxis] + generator.normal(0, spread, (rows, rollouts))
    pairs = scores_of(first.mean(axis=1), second.mean(axis=1))
    estimate = with_interval(observed_means(pairs), stderr_of_mean(unit_sums(pairs)), rows - 1)
    noise = rollout_noise(first.tolist(), second.tolist(), np.ones(rows, dtype=np.int64))
    return replace(estimate, noise=noise)


def test_the_spread_is_split_into_that_of_rows_and_that_of_rollouts() -> None:
    estimate = compared(np.random.default_rng(4), 3_000, 4)
    assert estimate.noise is not None
    assert estimate.stderr is not None
    assert estimate.noise.of_single == pytest.approx(WITHIN / np.sqrt(3_000), rel=0.02)
    assert estimate.noise.stderr == pytest.approx(WITHIN / np.sqrt(4 * 3_000), rel=0.02)
    assert estimate.stderr**2 - estimate.noise.stderr**2 == pytest.approx(BETWEEN**2 / 3_000, rel=0.15)


def test_one_difference_in_twenty_of_equal_models_is_beyond_the_noise_floor() -> None:
    """The same rows are answered again by the same models; only the rollouts are drawn anew."""
    generator = np.random.default_rng(3)
    rows, rollouts = 60, 3
    chance: Array = generator.random(rows)
    beyond = 0
    for _ in range(1_000):
        runs = [(generator.random((rows, rollouts)) < chance[:, np.newaxis]) * 1.0 for _ in range(2)]
        noise = rollout_noise(runs[0].tolist(), runs[1].tolist(), np.ones(rows, dtype=np.int64))
        floor = DifferenceEstimate(noise=noise).noise_floor
        assert floor is not None
        beyond += abs(runs[0].mean() - runs[1].mean()) > floor
    assert beyond / 1_000 == pytest.approx(0.05, abs=0.02)


def test_like_rows_count_together_and_rows_with_fewer_rollouts_take_the_spread_of_the_others() -> None:
    apart = rollout_noise([[0, 1], [0, 1], [1]], [[1, 1], [1, 1], [0, 0]], np.array([1, 1, 1]))
    together = rollout_noise([[0, 1], [1]], [[1, 1], [0, 0]], np.array([2, 1]))
    # Variance 1/2 of the first run over 2, 2 and 1 rollouts, and none of the second.
    assert apart == together == RolloutNoise(np.sqrt(0.5 * (2 / 3) / 3), np.sqrt(0.5 / 3))
    assert rollout_noise([[0.0], [1.0]], [[0.0, 1.0], [1.0, 1.0]], np.array([1, 1])) is None


def test_the_noise_of_a_benchmark_is_that_of_its_tasks_weighted() -> None:
    generator = np.random.default_rng(4)
    tasks = [compared(generator, rows, 2) for rows in (100, 300)]
    whole = benchmark_difference(tasks, is_weighted_by_size=True).noise
    floors = [task.noise_floor for task in tasks]
    assert whole is not None
    assert None not in floors
    assert 1.959963984540054 * whole.stderr == pytest.approx(
        np.hypot(0.25 * (floors[0] or 0), 0.75 * (floors[1] or 0))
    )
    without = replace(tasks[0], noise=None)
    assert benchmark_difference([without, tasks[1]], is_weighted_by_size=True).noise is None


@pytest.mark.parametrize(("alpha", "power"), [(0.05, 0.8), (0.01, 0.9)])
@pytest.mark.parametrize("wanted", [0.02, 0.4])
def test_rows_are_those_of_a_power_analysis(wanted: float, alpha: float, power: float) -> None:
    estimate = DifferenceEstimate(pairs=400, stderr=0.025)
    [size] = planned_sizes(estimate, SizeGoal(wanted, alpha, power), 16)
    reference = TTestPower().solve_power(wanted / 0.5, alpha=alpha, power=power, alternative="two-sided")
    assert size.rollouts is None
    assert size.rows == pytest.approx(reference, abs=2.5)


def mcnemar_power(rows: int, differing: float, difference: float, alpha: float) -> float:
    """Of the exact test, over every outcome."""
    counts = np.arange(rows + 1)
    least = stats.binom.isf(alpha / 2, counts, 0.5) + 1
    found = stats.binom.sf(least - 1, counts, (1 + difference / differing) / 2)
    return float(stats.binom.pmf(counts, rows, differing) @ found)


@pytest.mark.parametrize(("alpha", "power"), [(0.05, 0.8), (0.01, 0.9)])
@pytest.mark.parametrize(
    ("differing", "wanted"), [(0.04, 0.01), (0.1, 0.01), (0.1, 0.03), (0.2, 0.05), (0.4, 0.1), (0.3, 0.15)]
)
def test_rows_of_right_and_wrong_answers_keep_the_power_of_the_exact_test(
    differing: float, wanted: float, alpha: float, power: float
) -> None:
    half = round(500 * differing)
    estimate = difference_of_means(right_or_wrong(1_000 - 2 * half, half, half, 0))
    [size] = planned_sizes(estimate, SizeGoal(wanted, alpha, power), 16)
    assert mcnemar_power(size.rows, max(differing, wanted), wanted, alpha) == pytest.approx(power, abs=0.03)


@pytest.mark.parametrize("wanted", [0.9, 1.0])
def test_as_many_rows_as_the_exact_test_needs_at_all(wanted: float) -> None:
    [size] = planned_sizes(difference_of_means(right_or_wrong(9, 1, 1, 0)), SizeGoal(wanted), 1)
    assert mcnemar_power(size.rows, wanted, wanted, 0.05) >= 0.5


@pytest.mark.parametrize("wanted", [1e-8, 1e-170, 5e-324, 0.0])
def test_a_difference_that_no_benchmark_shows_has_no_size(wanted: float) -> None:
    assert not list(planned_sizes(DifferenceEstimate(pairs=400, stderr=0.025), SizeGoal(wanted), 16))
    assert not list(planned_sizes(difference_of_means(right_or_wrong(9, 1, 1, 0)), SizeGoal(wanted), 16))
    noisy = DifferenceEstimate(pairs=400, stderr=0.025, noise=RolloutNoise(0.01, 0.02))
    assert not list(planned_sizes(noisy, SizeGoal(wanted), 16))


def test_rollouts_take_the_place_of_rows_until_rows_differ_more_than_rollouts() -> None:
    estimate = compared(np.random.default_rng(5), 5_000, 8)
    sizes = list(planned_sizes(estimate, SizeGoal(0.01), 20))
    assert [size.rollouts for size in sizes] == [1, 2, 4, 8, 16]
    expected = [7.849 * (BETWEEN**2 + WITHIN**2 / k) / 0.01**2 for k in (1, 2, 4, 8, 16)]
    assert [size.rows for size in sizes] == pytest.approx(expected, rel=0.05)
    assert not list(planned_sizes(DifferenceEstimate(pairs=3), SizeGoal(0.01), 4))


def test_a_plan_keeps_its_power() -> None:
    generator = np.random.default_rng(6)
    [_, size, *_] = planned_sizes(compared(generator, 5_000, 4), SizeGoal(0.1), 4)
    found = 0
    for _ in range(300):
        low = compared(generator, size.rows, size.rollouts or 0, gain=0.1).ci_low
        assert low is not None
        found += low > 0
    assert found / 300 == pytest.approx(0.8, abs=0.07)
