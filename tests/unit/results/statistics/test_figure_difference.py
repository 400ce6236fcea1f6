"""Differences of f1, mcc and correlations: figures of the libraries, exact swaps, intervals that cover."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from services.results.statistics.correlations import Correlation, pearson, spearman
from services.results.statistics.label_figures import Measure, Tables, f1, mcc
from services.results.statistics.paired import figure_difference
from services.results.statistics.paired.correlation_difference import difference_of_correlations, mean_ranks
from services.results.statistics.paired.difference_estimate import PAIRED_PERMUTATION, DifferenceEstimate
from services.results.statistics.paired.figure_difference import UNDEFINED_FIGURE
from services.results.statistics.paired.label_difference import TOO_MANY_LABELS, difference_of_labels
from services.results.statistics.paired.mean_difference import ONE_PAIR, difference_of_means
from services.results.statistics.paired.pairs import LabelPairs, Predictions
from tests.fakes.results.paired_samples import Array, Numbers, labels_of, scores_of
from tests.fakes.thorough_cases import first_cases

GENERATOR = np.random.default_rng(5)


class Correlated(Protocol):
    statistic: float


Reference = Callable[[Array, Array], Correlated]


def f1_of(targets: Numbers, predicted: Numbers) -> float:
    hits = int(((targets == 1) & (predicted == 1)).sum())
    wrong = int(((targets == 1) ^ (predicted == 1)).sum())
    return 2 * hits / (2 * hits + wrong)


def agreeing(targets: Numbers, share: float, generator: np.random.Generator) -> Numbers:
    return np.where(generator.random(len(targets)) < share, targets, 1 - targets)


def test_f1_is_compared_by_swapping_the_predictions_of_a_sample() -> None:
    targets = np.array([1, 1, 0, 1, 0, 1, 1, 0])
    first, second = np.array([1, 1, 0, 1, 1, 1, 1, 0]), np.array([0, 1, 0, 0, 1, 0, 1, 1])
    observed = abs(f1_of(targets, first) - f1_of(targets, second))
    reached = [
        abs(f1_of(targets, np.where(swap, first, second)) - f1_of(targets, np.where(swap, second, first)))
        >= observed - 1e-12
        for swap in map(np.array, itertools.product((False, True), repeat=8))
    ]
    estimate = difference_of_labels(labels_of(targets, first, second), f1)
    assert estimate.difference == pytest.approx(f1_of(targets, first) - f1_of(targets, second))
    assert estimate.p_value == pytest.approx(np.mean(reached))
    assert estimate.test == PAIRED_PERMUTATION


def test_the_swaps_of_many_labels_are_those_of_scipy() -> None:
    targets = GENERATOR.integers(0, 2, 150)
    first, second = agreeing(targets, 0.8, GENERATOR), agreeing(targets, 0.73, GENERATOR)

    def difference(one: Numbers, other: Numbers) -> float:
        return f1_of(targets, one) - f1_of(targets, other)

    reference = stats.permutation_test(
        (first, second),
        difference,
        permutation_type="samples",
        n_resamples=4000,
        vectorized=False,
        random_state=np.random.default_rng(1),
    ).pvalue
    estimate = difference_of_labels(labels_of(targets, first, second), f1)
    assert estimate.p_value == pytest.approx(reference, abs=0.03)


def test_accuracy_as_a_figure_of_tables_is_judged_as_accuracy_as_a_mean() -> None:
    """Two ways to the same test: swapping predictions, and flipping the signs of differences."""
    targets = GENERATOR.integers(0, 3, 400)
    first, second = agreeing(targets, 0.8, GENERATOR), agreeing(targets, 0.74, GENERATOR)

    def accuracy(tables: Tables) -> Array:
        right: Array = tables.counts[:, tables.target == tables.predicted].sum(axis=1) / tables.counts.sum(
            axis=1
        )
        return right

    by_tables = difference_of_labels(labels_of(targets, first, second), accuracy)
    by_scores = difference_of_means(scores_of(first == targets, second == targets))
    assert by_tables.difference == pytest.approx(by_scores.difference)
    assert by_tables.p_value == pytest.approx(by_scores.p_value, abs=0.02)
    assert (by_tables.ci_low, by_tables.ci_high) == pytest.approx(
        (by_scores.ci_low, by_scores.ci_high), abs=0.01
    )


def test_clusters_are_swapped_and_drawn_as_a_whole() -> None:
    targets = np.tile([0, 1], 100)
    first, second = targets.copy(), np.where(np.arange(200) < 40, 1 - targets, targets)
    alone = difference_of_labels(labels_of(targets, first, second), mcc)
    clustered = difference_of_labels(in_clusters(targets, first, second, np.arange(200) // 40), mcc)
    assert clustered.difference == alone.difference
    assert clustered.clusters == 5
    assert alone.p_value is not None
    assert alone.p_value < 0.001
    assert clustered.p_value == 1.0


def in_clusters(targets: Numbers, first: Numbers, second: Numbers, clusters: Numbers) -> LabelPairs:
    weights, sizes = np.ones(len(targets)), np.ones(clusters.max() + 1, dtype=np.int64)
    predictions = [
        Predictions(clusters, targets.astype(float), run.astype(float), weights) for run in (first, second)
    ]
    return LabelPairs(predictions[0], predictions[1], sizes, pairs=len(targets), clusters=len(sizes))


def correlated(size: int, noise: float, generator: np.random.Generator) -> tuple[Array, Array]:
    targets = generator.normal(size=size)
    return targets, targets + generator.normal(0, noise, size)


@pytest.mark.parametrize(
    ("correlation", "reference"),
    [(pearson, stats.pearsonr), (spearman, stats.spearmanr)],
)
def test_correlations_are_those_of_scipy(correlation: Correlation, reference: Reference) -> None:
    targets = np.round(GENERATOR.normal(3.0, 1.0, 120), 1)
    first, second = (
        targets + np.round(GENERATOR.normal(0, 0.5, 120), 1),
        targets + GENERATOR.normal(0, 2.0, 120),
    )
    estimate = difference_of_correlations(labels_of(targets, first, second), correlation)
    expected = [float(reference(targets, run).statistic) for run in (first, second)]
    assert [estimate.first_mean, estimate.second_mean] == pytest.approx(expected)
    assert estimate.p_value is not None
    assert estimate.p_value < 0.001
    assert covers(estimate, expected[0] - expected[1])
    assert not covers(estimate, 0.0)


def test_ranks_are_those_of_scipy() -> None:
    for values in (GENERATOR.integers(20, size=500).astype(float), GENERATOR.normal(size=500)):
        assert np.array_equal(mean_ranks(values), stats.rankdata(values))


def test_the_swaps_of_pearson_are_those_of_scipy() -> None:
    targets, first = correlated(60, 1.0, GENERATOR)
    second = targets + GENERATOR.normal(0, 1.3, 60)

    def difference(one: Array, other: Array) -> float:
        return float(np.corrcoef(targets, one)[0, 1] - np.corrcoef(targets, other)[0, 1])

    reference = stats.permutation_test(
        (first, second),
        difference,
        permutation_type="samples",
        n_resamples=4000,
        vectorized=False,
        random_state=np.random.default_rng(1),
    ).pvalue
    assert difference_of_correlations(labels_of(targets, first, second), pearson).p_value == pytest.approx(
        reference, abs=0.03
    )


@pytest.mark.parametrize("figure", [pearson, spearman, mcc])
def test_the_error_over_many_units_is_that_of_a_part_of_them(
    figure: Correlation | Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(8)
    targets = generator.integers(0, 4, 3000)
    first, second = targets + generator.integers(0, 3, 3000), targets + generator.integers(0, 5, 3000)
    pairs = labels_of(targets, first, second)
    if figure is mcc:
        # Every passage of three answers is a kind of its own.
        passages = np.repeat(np.arange(1000), 3)
        one, other = (replace(run, units=passages) for run in (pairs.first, pairs.second))
        pairs = LabelPairs(one, other, np.ones(1000, dtype=np.int64), 3000, 1000)

    def difference() -> DifferenceEstimate:
        if figure is mcc:
            return difference_of_labels(pairs, mcc)
        return difference_of_correlations(pairs, pearson if figure is pearson else spearman)

    whole = difference()
    monkeypatch.setattr(figure_difference, "MAX_DRAWN_UNITS", 400)
    part = difference()
    assert (part.difference, part.p_value) == (whole.difference, whole.p_value)
    assert part.stderr == pytest.approx(whole.stderr, rel=0.2)
    assert (part.ci_low, part.ci_high) == pytest.approx((whole.ci_low, whole.ci_high), abs=0.02)
    assert part.stderr != whole.stderr


def test_one_that_always_reads_the_same_has_no_correlation() -> None:
    targets, first = correlated(30, 1.0, GENERATOR)
    estimate = difference_of_correlations(labels_of(targets, first, np.full(30, 2.5)), pearson)
    assert (estimate.difference, estimate.p_value, estimate.remark) == (None, None, UNDEFINED_FIGURE)


def test_a_draw_without_correlation_spoils_no_interval() -> None:
    targets = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 2.0])
    estimate = difference_of_correlations(labels_of(targets, targets[::-1], targets), spearman)
    numbers = [estimate.ci_low, estimate.ci_high, estimate.stderr, estimate.p_value]
    assert np.isfinite(np.array(numbers, dtype=np.float64)).all()


def test_more_labels_than_memory_are_refused_and_not_guessed() -> None:
    targets = np.arange(4000)
    estimate = difference_of_labels(labels_of(targets, targets, targets[::-1]), mcc)
    assert (estimate.pairs, estimate.difference, estimate.remark) == (4000, None, TOO_MANY_LABELS)


def test_one_sample_proves_nothing() -> None:
    one = np.array([1])
    estimate = difference_of_labels(labels_of(one, one, 1 - one), f1)
    assert (estimate.difference, estimate.p_value, estimate.ci_low, estimate.remark) == (
        1.0,
        None,
        None,
        ONE_PAIR,
    )


def covers(estimate: DifferenceEstimate, truth: float) -> bool:
    assert estimate.ci_low is not None
    assert estimate.ci_high is not None
    return estimate.ci_low <= truth <= estimate.ci_high


@first_cases(1, "repetitions", (150, 600))
def test_the_bootstrap_interval_of_f1_covers_what_it_says(repetitions: int) -> None:
    """Pairs of runs that both agree with 80 % of 200 labels: the true difference is 0."""
    generator = np.random.default_rng(3)
    covered = 0
    for _ in range(repetitions):
        targets = generator.integers(0, 2, 200)
        pairs = labels_of(targets, agreeing(targets, 0.8, generator), agreeing(targets, 0.8, generator))
        covered += covers(difference_of_labels(grouped(pairs), f1), 0.0)
    assert stats.binomtest(covered, repetitions, 0.95).pvalue > 0.01


def grouped(pairs: LabelPairs) -> LabelPairs:
    """Equal samples as one unit, as the database gives them: a test of that too, and faster."""
    rows: NDArray[np.float64] = np.stack(
        [pairs.first.target, pairs.first.predicted, pairs.second.predicted], axis=1
    )
    kinds, sizes = np.unique(rows, axis=0, return_counts=True)
    units, ones = np.arange(len(kinds)), np.ones(len(kinds))
    first, second = (Predictions(units, kinds[:, 0], kinds[:, side], ones) for side in (1, 2))
    return LabelPairs(first, second, sizes.astype(np.int64), pairs.pairs)
