"""Errors and intervals equal those of statsmodels and scipy, and cover what they promise."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.proportion import proportion_confint

from services.results.statistics.columns import PairColumns
from services.results.statistics.figure import Columns, figure_of
from services.results.statistics.sample_scores import ScoreColumns
from tests.fakes.thorough_cases import first_cases

Values = NDArray[np.float64]


def interval(metric: str, columns: Columns) -> tuple[float, float]:
    figure = figure_of(metric, columns)
    assert figure.ci_low is not None
    assert figure.ci_high is not None
    return figure.ci_low, figure.ci_high


def right_of(right: int, count: int) -> ScoreColumns:
    return ScoreColumns(np.array([1.0] * right + [0.0] * (count - right)))


def coverage(metric: str, truth: float, draw: Callable[[], Columns], times: int) -> float:
    intervals = [interval(metric, draw()) for _ in range(times)]
    return sum(low <= truth <= high for low, high in intervals) / times


@pytest.mark.parametrize(("right", "count"), [(0, 5), (5, 5), (1, 20), (13, 20), (77, 100), (499, 500)])
def test_the_interval_of_a_share_is_that_of_statsmodels(right: int, count: int) -> None:
    expected = proportion_confint(right, count, method="wilson")
    assert interval("acc", right_of(right, count)) == pytest.approx(expected, abs=1e-12)


def test_the_interval_of_a_mean_is_that_of_scipy() -> None:
    values = np.random.default_rng(1).gamma(2.0, size=17)
    expected = stats.t.interval(0.95, 16, values.mean(), stats.sem(values))
    assert interval("s", ScoreColumns(values)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("sizes", [[3] * 12, [1, 2, 9, 4, 4, 1, 1, 7]])
def test_the_error_of_clustered_scores_is_that_of_a_cluster_robust_regression(sizes: list[int]) -> None:
    generator = np.random.default_rng(2)
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    values = generator.normal(size=len(sizes))[clusters] + generator.normal(size=len(clusters))
    fit = OLS(values, np.ones_like(values)).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    assert figure_of("s", ScoreColumns(values, clusters=clusters)).stderr == pytest.approx(fit.bse[0])


def test_clusters_of_one_size_have_the_interval_of_their_means() -> None:
    means = np.random.default_rng(3).normal(size=9)
    expected = stats.t.interval(0.95, 8, means.mean(), stats.sem(means))
    repeated = ScoreColumns(np.repeat(means, 4), clusters=np.repeat(np.arange(9), 4))
    assert interval("s", repeated) == pytest.approx(expected, abs=1e-12)


def test_clusters_that_are_all_right_leave_room_for_doubt() -> None:
    low, high = interval("acc", ScoreColumns(np.ones(30), clusters=np.arange(30) // 5))
    assert high == 1.0
    assert low < proportion_confint(6, 6, method="wilson")[0]


def test_where_scores_do_not_vary_the_interval_of_their_mean_is_undefined() -> None:
    figure = figure_of("squad_f1", ScoreColumns(np.full(9, 0.5)))
    assert figure.stderr == 0.0
    assert (figure.ci_low, figure.ci_high, figure.interval_method) == (None, None, "")


@pytest.mark.parametrize(
    ("metric", "columns"),
    [
        ("f1", PairColumns(*np.ones((2, 5), dtype=np.int64))),
        ("mcc", PairColumns(*np.zeros((2, 5), dtype=np.int64))),
        ("pearson", PairColumns(np.array([1.0, 2.0]), np.array([0.1, 0.7]))),
        ("spearman", PairColumns(np.array([1.0, 2.0]), np.array([3.0, 1.0]))),
    ],
)
def test_where_bootstrap_samples_do_not_vary_the_error_is_undefined(metric: str, columns: Columns) -> None:
    figure = figure_of(metric, columns)
    assert figure.mean is not None
    assert (figure.stderr, figure.std, figure.ci_low, figure.interval_method) == (None, None, None, "")


@first_cases(2, "count", [20, 200, 50, 100, 500])
def test_the_interval_of_a_share_covers_it(count: int) -> None:
    """Exactly, not by simulation. Counts are whole, so coverage jumps with the share: all shares together."""
    shares = np.linspace(0.05, 0.95, 181)
    ends = np.array([interval("acc", right_of(right, count)) for right in range(count + 1)])
    chance = stats.binom.pmf(np.arange(count + 1)[:, np.newaxis], count, shares)
    covered = (chance * ((ends[:, :1] <= shares) & (shares <= ends[:, 1:]))).sum(axis=0)
    assert 0.93 <= covered.mean() <= 0.97
    assert covered.min() >= 0.91


@first_cases(1, "count", [5, 20, 100])
def test_the_interval_of_a_mean_covers_it(count: int) -> None:
    generator = np.random.default_rng(4)
    drawn = coverage("s", 0.3, lambda: ScoreColumns(generator.normal(0.3, 1.0, count)), 2000)
    assert 0.93 <= drawn <= 0.97


@first_cases(1, "clusters", [40, 150])
@first_cases(1, "likeness", [0.3, 0.05, 0.7])
@first_cases(1, "share", [0.5, 0.8])
def test_the_interval_of_a_clustered_share_covers_it(clusters: int, likeness: float, share: float) -> None:
    generator = np.random.default_rng(5)
    known = (1 - likeness) / likeness

    def passages() -> ScoreColumns:
        """Passages of 1 to 9 questions, some easier than others."""
        ease = generator.beta(share * known, (1 - share) * known, clusters)
        passage = np.repeat(np.arange(clusters), generator.integers(1, 10, clusters))
        return ScoreColumns((generator.random(len(passage)) < ease[passage]).astype(float), clusters=passage)

    assert 0.93 <= coverage("acc", share, passages, 1000) <= 0.97


def test_the_interval_of_a_clustered_mean_covers_it() -> None:
    generator = np.random.default_rng(6)

    def passages() -> ScoreColumns:
        passage = np.repeat(np.arange(30), generator.integers(1, 10, 30))
        return ScoreColumns(
            generator.normal(size=30)[passage] + generator.normal(size=len(passage)), clusters=passage
        )

    assert 0.93 <= coverage("s", 0.0, passages, 2000) <= 0.97


@first_cases(1, ("easy", "hard"), [(4.0, 1.0), (0.3, 0.3)])
@first_cases(1, "count", [20, 200])
def test_the_interval_of_a_share_over_rollouts_covers_it(count: int, easy: float, hard: float) -> None:
    generator = np.random.default_rng(7)

    def four_rollouts() -> ScoreColumns:
        right = generator.random((count, 4)) < generator.beta(easy, hard, (count, 1))
        samples = np.repeat(np.arange(count), 4)
        return ScoreColumns(right.ravel().astype(float), samples, np.tile(np.arange(4), count))

    assert 0.93 <= coverage("acc", easy / (easy + hard), four_rollouts, 3000) <= 0.97


@first_cases(1, ("positive", "accuracy"), [(0.5, 0.95), (0.3, 0.85), (0.2, 0.7)])
def test_the_intervals_of_label_figures_cover_them(positive: float, accuracy: float) -> None:
    hits, misses = positive * accuracy, positive * (1 - accuracy)
    alarms, rejections = (1 - positive) * (1 - accuracy), (1 - positive) * accuracy
    margins = (hits + alarms) * (hits + misses) * (rejections + alarms) * (rejections + misses)
    truths = {
        "f1": 2 * hits / (2 * hits + alarms + misses),
        "mcc": (hits * rejections - alarms * misses) / np.sqrt(margins),
    }
    generator = np.random.default_rng(8)

    def labels() -> PairColumns:
        targets = (generator.random(200) < positive).astype(np.int64)
        return PairColumns(targets, np.where(generator.random(200) < accuracy, targets, 1 - targets))

    for metric, truth in truths.items():
        assert 0.93 <= coverage(metric, truth, labels, 800) <= 0.97, metric


def test_the_interval_of_a_correlation_covers_it() -> None:
    correlation = 0.6
    generator = np.random.default_rng(9)

    def numbers() -> PairColumns:
        targets, noise = generator.normal(size=(2, 200))
        return PairColumns(targets, correlation * targets + np.sqrt(1 - correlation**2) * noise)

    assert 0.93 <= coverage("pearson", correlation, numbers, 300) <= 0.97
