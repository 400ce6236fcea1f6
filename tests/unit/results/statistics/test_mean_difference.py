"""Differences of means: equal to the libraries' own tests, with intervals that cover what they say."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.power import TTestPower

from proctor.values.comparison import Verdict
from services.results.statistics.paired.difference_estimate import (
    EXACT_MCNEMAR,
    PAIRED_PERMUTATION,
    PAIRED_T,
    verdict_of,
)
from services.results.statistics.paired.mean_difference import (
    ONE_CLUSTER,
    ONE_PAIR,
    adjusted_wald,
    difference_of_means,
    mcnemar_p_value,
    permutation_p_value,
    stderr_of_mean,
    t_p_value,
)
from services.results.statistics.paired.pairs import unit_sums
from tests.fakes.results.paired_samples import Array, right_or_wrong, scores_of

GENERATOR = np.random.default_rng(11)


@pytest.mark.parametrize("differing", [(0, 0), (1, 0), (0, 6), (9, 2), (40, 61), (500, 430)])
def test_mcnemar_is_the_exact_one_of_statsmodels(differing: tuple[int, int]) -> None:
    only_first, only_second = differing
    reference = mcnemar([[30, only_first], [only_second, 20]], exact=True).pvalue
    assert mcnemar_p_value(only_first, only_second) == pytest.approx(reference, abs=1e-12)


def test_right_or_wrong_is_judged_by_the_pairs_that_differ() -> None:
    estimate = difference_of_means(right_or_wrong(both=50, only_first=20, only_second=5, neither=25))
    assert (estimate.pairs, estimate.only_first_right, estimate.only_second_right) == (100, 20, 5)
    assert (estimate.first_mean, estimate.second_mean) == (0.7, 0.55)
    assert estimate.difference == pytest.approx(0.15)
    assert estimate.test == EXACT_MCNEMAR
    assert estimate.p_value == pytest.approx(stats.binomtest(5, 25).pvalue)


def test_the_permutation_of_few_pairs_is_enumerated() -> None:
    differences = np.array([0.5, -0.25, 1.0, 0.75, 0.0, 0.5])
    flips = itertools.product((-1, 1), repeat=len(differences))
    reached = [abs(np.dot(signs, differences)) >= abs(differences.sum()) - 1e-12 for signs in flips]
    pairs = scores_of(differences, np.zeros(6))
    assert permutation_p_value(unit_sums(pairs)) == pytest.approx(np.mean(reached))


def test_the_permutation_of_many_pairs_is_that_of_scipy() -> None:
    first, second = GENERATOR.random(200), GENERATOR.random(200) - 0.04
    reference = stats.permutation_test(
        (first, second),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        vectorized=True,
        random_state=np.random.default_rng(1),
    ).pvalue
    estimate = difference_of_means(scores_of(first, second))
    assert estimate.test == PAIRED_PERMUTATION
    assert estimate.p_value == pytest.approx(reference, abs=0.02)


def test_a_permutation_comes_out_the_same_again_and_is_never_zero() -> None:
    pairs = scores_of(GENERATOR.random(500) + 2.0, GENERATOR.random(500))
    p_value = permutation_p_value(unit_sums(pairs))
    assert p_value == permutation_p_value(unit_sums(pairs))
    assert 0.0 < p_value < 1e-4


def test_above_ten_thousand_pairs_the_test_is_students() -> None:
    first, second = GENERATOR.random(10_001), GENERATOR.random(10_001) + 0.005
    estimate = difference_of_means(scores_of(first, second))
    reference = stats.ttest_rel(first, second)
    interval = reference.confidence_interval()
    assert estimate.test == PAIRED_T
    assert estimate.p_value == pytest.approx(reference.pvalue)
    assert (estimate.ci_low, estimate.ci_high) == pytest.approx((interval.low, interval.high))


def test_the_interval_of_scores_is_the_paired_one_of_student() -> None:
    first, second = GENERATOR.random(40), GENERATOR.random(40)
    estimate = difference_of_means(scores_of(first, second))
    interval = stats.ttest_rel(first, second).confidence_interval()
    assert (estimate.ci_low, estimate.ci_high) == pytest.approx((interval.low, interval.high))


def test_samples_of_a_passage_are_swapped_together() -> None:
    """One passage carries the whole difference: beyond doubt by sample, nothing by passage."""
    clusters = np.repeat(np.arange(5), 20)
    first = (clusters == 0).astype(float)
    estimate = difference_of_means(scores_of(first, np.zeros(100), clusters))
    assert mcnemar_p_value(20, 0) < 1e-5
    assert (estimate.p_value, estimate.clusters, estimate.test) == (1.0, 5, PAIRED_PERMUTATION)
    assert verdict_of(estimate, estimate.p_value) is Verdict.NOT_SHOWN


def test_clusters_of_one_are_samples() -> None:
    first, second = GENERATOR.random(60), GENERATOR.random(60)
    alone = difference_of_means(scores_of(first, second))
    clustered = difference_of_means(scores_of(first, second, np.arange(60)))
    assert clustered.p_value == pytest.approx(alone.p_value)
    assert (clustered.ci_low, clustered.ci_high) == pytest.approx((alone.ci_low, alone.ci_high))


def test_the_clustered_error_is_that_of_cluster_means_where_clusters_are_equal() -> None:
    values = GENERATOR.random((30, 4))
    units = unit_sums(scores_of(values.ravel(), np.zeros(120), np.repeat(np.arange(30), 4)))
    assert stderr_of_mean(units) == pytest.approx(stats.sem(values.mean(axis=1)))
    assert t_p_value(units) == pytest.approx(stats.ttest_1samp(values.mean(axis=1), 0.0).pvalue)


def test_what_can_be_detected_is_what_a_power_analysis_says() -> None:
    first, second = GENERATOR.random(80), GENERATOR.random(80)
    estimate = difference_of_means(scores_of(first, second))
    effect = TTestPower().solve_power(nobs=80, alpha=0.05, power=0.8)
    assert estimate.smallest_detectable == pytest.approx(effect * np.std(first - second, ddof=1), rel=0.01)


def test_equal_runs_are_not_said_to_be_equal_beyond_doubt() -> None:
    estimate = difference_of_means(right_or_wrong(both=60, only_first=0, only_second=0, neither=40))
    assert (estimate.difference, estimate.p_value) == (0.0, 1.0)
    assert estimate.ci_low is not None
    assert estimate.ci_high is not None
    assert estimate.ci_low < -0.01 < 0.01 < estimate.ci_high
    assert estimate.smallest_detectable is not None
    assert estimate.smallest_detectable > 0.02


def test_scores_that_never_differ_have_no_interval() -> None:
    values = GENERATOR.random(30)
    estimate = difference_of_means(scores_of(values, values))
    assert (estimate.difference, estimate.p_value) == (0.0, 1.0)
    assert (estimate.ci_low, estimate.stderr, estimate.smallest_detectable) == (None, None, None)
    assert estimate.remark


def test_one_sample_proves_nothing() -> None:
    estimate = difference_of_means(scores_of([1.0], [0.0]))
    assert (estimate.difference, estimate.p_value, estimate.ci_low, estimate.remark) == (
        1.0,
        None,
        None,
        ONE_PAIR,
    )
    assert verdict_of(estimate, None) is Verdict.UNDEFINED


def test_one_passage_proves_nothing() -> None:
    estimate = difference_of_means(scores_of([1.0, 0.0], [0.0, 0.0], np.zeros(2, dtype=np.int64)))
    assert (estimate.p_value, estimate.remark) == (None, ONE_CLUSTER)


def test_nothing_in_common_is_undefined() -> None:
    estimate = difference_of_means(scores_of([], []))
    assert (estimate.pairs, estimate.difference, estimate.p_value) == (0, None, None)


@pytest.mark.parametrize(
    ("pairs", "shares"), [(20, (0.2, 0.1)), (50, (0.1, 0.1)), (50, (0.3, 0.1)), (400, (0.3, 0.2))]
)
def test_the_interval_of_right_or_wrong_covers_what_it_says(pairs: int, shares: tuple[float, float]) -> None:
    assert 0.93 <= _coverage(pairs, shares) <= 0.97


def test_where_hardly_any_pair_differs_the_interval_covers_rather_too_much() -> None:
    assert _coverage(100, (0.02, 0.02)) > 0.97


def _coverage(pairs: int, shares: tuple[float, float]) -> float:
    """Summed over every outcome there can be: no simulation."""
    covered, truth = 0.0, shares[0] - shares[1]
    for one, other in itertools.product(range(pairs + 1), repeat=2):
        centre, stderr = adjusted_wald(one, other, pairs) if one + other <= pairs else (math.inf, 1.0)
        if abs(centre - truth) <= 1.959964 * stderr:
            covered += _multinomial(pairs, one, other, shares)
    return covered


def _multinomial(pairs: int, one: int, other: int, shares: tuple[float, float]) -> float:
    rest = pairs - one - other
    ways = math.lgamma(pairs + 1) - math.lgamma(one + 1) - math.lgamma(other + 1) - math.lgamma(rest + 1)
    logs = one * math.log(shares[0]) + other * math.log(shares[1]) + rest * math.log(1 - sum(shares))
    return math.exp(ways + logs)


def _interval(first: Array, second: Array, clusters: Array | None = None) -> tuple[float, float]:
    numbers = None if clusters is None else clusters.astype(np.int64)
    units = unit_sums(scores_of(first, second, numbers))
    centre = float(units.sums.sum()) / len(first)
    half = float(stats.t.ppf(0.975, units.count - 1)) * stderr_of_mean(units)
    return centre - half, centre + half


def test_the_interval_over_passages_covers_what_it_says() -> None:
    """2,000 runs of 40 passages of 1 to 6 samples that share their difference; the true one is 0.1."""
    generator = np.random.default_rng(2)
    covered = 0
    for _ in range(2000):
        clusters = np.repeat(np.arange(40), generator.integers(1, 7, 40))
        shared = generator.normal(0.1, 1.0, 40)[clusters]
        low, high = _interval(
            shared + generator.normal(0, 0.5, len(clusters)), np.zeros(len(clusters)), clusters
        )
        covered += low <= 0.1 <= high
    assert 0.93 <= covered / 2000 <= 0.97
