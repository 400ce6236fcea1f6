"""The benchmark from its tasks, and what holds over everything that was compared: few false findings."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from proctor.values.comparison import Verdict
from services.results.comparison.comparison import BENCHMARK, Difference, corrected
from services.results.statistics.paired.benchmark_difference import NO_ERROR, NO_FIGURE, benchmark_difference
from services.results.statistics.paired.difference_estimate import (
    STRATIFIED_PERMUTATION,
    STRATIFIED_T,
    DifferenceEstimate,
    holm,
    verdict_of,
)
from services.results.statistics.paired.mean_difference import difference_of_means
from tests.fakes.results.paired_samples import Array, scores_of
from tests.fakes.thorough_cases import first_cases

GENERATOR = np.random.default_rng(13)


def tasks_of(*sizes: int) -> list[DifferenceEstimate]:
    return [difference_of_means(scores_of(GENERATOR.random(size), GENERATOR.random(size))) for size in sizes]


def test_a_benchmark_weighted_by_size_is_the_mean_over_all_pairs() -> None:
    samples = [(GENERATOR.random(size), GENERATOR.random(size)) for size in (30, 90)]
    benchmark = benchmark_difference(
        [difference_of_means(scores_of(*pair)) for pair in samples], is_weighted_by_size=True
    )
    together = difference_of_means(scores_of(*(np.concatenate(side) for side in zip(*samples, strict=True))))
    assert (benchmark.pairs, benchmark.test) == (120, STRATIFIED_T)
    assert benchmark.difference == pytest.approx(together.difference)
    assert benchmark.first_mean == pytest.approx(together.first_mean)


def test_an_equally_weighted_benchmark_is_the_mean_of_its_tasks() -> None:
    tasks = tasks_of(20, 200, 50)
    benchmark = benchmark_difference(tasks, is_weighted_by_size=False)
    assert benchmark.difference == pytest.approx(np.mean([task.difference for task in tasks]))
    assert benchmark.stderr == pytest.approx(math.sqrt(sum((task.stderr or 0) ** 2 for task in tasks)) / 3)


def test_one_task_alone_is_the_benchmark() -> None:
    [task] = tasks_of(30)
    assert benchmark_difference([task], is_weighted_by_size=True) is task


def test_halves_of_a_task_are_judged_by_the_normal_test_of_statsmodels() -> None:
    """Strata of like means and spreads: next to nothing is gained by knowing them apart."""
    first, second = GENERATOR.random(3000), GENERATOR.random(3000)
    halves = [difference_of_means(scores_of(first[half::2], second[half::2])) for half in (0, 1)]
    benchmark = benchmark_difference(halves, is_weighted_by_size=True)
    differences = DescrStatsW(first - second)
    assert benchmark.p_value == pytest.approx(differences.ztest_mean()[1], abs=0.01)
    assert (benchmark.ci_low, benchmark.ci_high) == pytest.approx(differences.zconfint_mean(), abs=0.001)


def test_two_strata_are_judged_as_two_independent_samples() -> None:
    """The difference of two strata is what Welch's test of two independent samples knows."""
    first, second = GENERATOR.random(250), GENERATOR.random(300) * 2
    tasks = [difference_of_means(scores_of(run, np.zeros(len(run)))) for run in (first, -second)]
    benchmark = benchmark_difference(tasks, is_weighted_by_size=False)
    assert benchmark.test == STRATIFIED_T
    independent = CompareMeans(DescrStatsW(first), DescrStatsW(second))
    assert benchmark.p_value == pytest.approx(independent.ttest_ind(usevar="unequal")[1])
    ends = independent.tconfint_diff(usevar="unequal")
    assert (benchmark.ci_low, benchmark.ci_high) == pytest.approx([end / 2 for end in ends])


def test_a_small_benchmark_is_permuted_within_its_tasks() -> None:
    """Each of the 2 ** 9 ways to swap the runs of a sample, counted out by scipy."""
    tasks = [(GENERATOR.random(size) + 0.3, GENERATOR.random(size)) for size in (4, 5)]
    benchmark = benchmark_difference(
        [difference_of_means(scores_of(*task)) for task in tasks], is_weighted_by_size=False
    )
    shares = np.concatenate([(first - second) / len(first) for first, second in tasks])
    reference = stats.permutation_test((shares,), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert benchmark.test == STRATIFIED_PERMUTATION
    assert benchmark.p_value == pytest.approx(reference.pvalue)


def test_without_the_figure_of_a_task_the_benchmark_has_none() -> None:
    benchmark = benchmark_difference([*tasks_of(30), DifferenceEstimate()], is_weighted_by_size=True)
    assert (benchmark.difference, benchmark.p_value, benchmark.remark) == (None, None, NO_FIGURE)


def test_a_task_of_one_sample_leaves_the_benchmark_without_a_test() -> None:
    benchmark = benchmark_difference(tasks_of(30, 1), is_weighted_by_size=True)
    assert benchmark.difference is not None
    assert (benchmark.p_value, benchmark.ci_low) == (None, None)
    assert benchmark.remark == NO_ERROR


def test_a_benchmark_without_tasks_is_undefined() -> None:
    assert benchmark_difference([], is_weighted_by_size=True).difference is None


def test_holm_is_that_of_statsmodels_and_skips_what_is_undefined() -> None:
    expected = multipletests([0.01, 0.04, 0.03], method="holm")[1]
    assert holm([0.01, None, 0.04, 0.03]) == [expected[0], None, expected[1], expected[2]]
    assert holm([None]) == [None]
    assert holm([]) == []


def test_a_benchmark_of_one_task_is_corrected_as_the_one_test_that_it_is() -> None:
    estimate, other = tasks_of(30, 40)
    shown = [Difference(0, 1, task, "acc", estimate) for task in ("t0", BENCHMARK)]
    differences, corrected_over = corrected([*shown, Difference(0, 1, "t1", "acc", other)])
    assert corrected_over == 2
    assert [one.adjusted_p_value for one in differences[:2]] == [
        holm([estimate.p_value, other.p_value])[0]
    ] * 2


@pytest.mark.parametrize(
    ("difference", "adjusted", "verdict"),
    [
        (0.2, 0.05, Verdict.FIRST_BETTER),
        (-0.2, 0.05, Verdict.SECOND_BETTER),
        (0.2, 0.051, Verdict.NOT_SHOWN),
        (0.2, None, Verdict.UNDEFINED),
    ],
)
def test_a_verdict_needs_a_corrected_p_value(
    difference: float, adjusted: float | None, verdict: Verdict
) -> None:
    assert verdict_of(DifferenceEstimate(difference=difference), adjusted) is verdict
    turned = DifferenceEstimate(difference=-difference)
    assert verdict_of(turned, adjusted, less_is_better=True) is verdict


@first_cases(1, "repetitions", (300, 2000))
def test_comparisons_without_a_difference_rarely_find_one(repetitions: int) -> None:
    """Comparisons of three equal models on three tasks and the benchmark: at most 5 % find any."""
    generator = np.random.default_rng(17)
    found = 0
    for _ in range(repetitions):
        tasks = [answers_of_equal_models(generator, samples, share) for samples, share in TASKS]
        estimates = [
            estimate
            for one, other in itertools.combinations(range(3), 2)
            for estimate in with_benchmark(
                [difference_of_means(scores_of(task[one], task[other])) for task in tasks]
            )
        ]
        adjusted = holm([estimate.p_value for estimate in estimates])
        found += any(p_value is not None and p_value <= 0.05 for p_value in adjusted)
    assert stats.binomtest(found, repetitions, 0.05, alternative="greater").pvalue > 0.01


TASKS = ((60, 0.5), (150, 0.8), (400, 0.65))


def answers_of_equal_models(generator: np.random.Generator, samples: int, share: float) -> Array:
    """Three models that are right equally often, and more often where the sample is easy."""
    easy = np.clip(share + generator.normal(0, 0.25, samples), 0, 1)
    right: Array = (generator.random((3, samples)) < easy).astype(np.float64)
    return right


def with_benchmark(tasks: list[DifferenceEstimate]) -> list[DifferenceEstimate]:
    return [*tasks, benchmark_difference(tasks, is_weighted_by_size=True)]


@first_cases(1, "is_weighted_by_size", [False, True])
@first_cases(1, ("tasks", "units"), [(2, 4), (3, 5)])
@pytest.mark.parametrize("is_clustered", [False, True])
def test_small_benchmarks_without_a_difference_rarely_find_one(
    *, tasks: int, units: int, is_clustered: bool, is_weighted_by_size: bool
) -> None:
    """1,000 benchmarks of a few samples, or of passages whose samples are alike: at most 6 % find any."""
    generator = np.random.default_rng(29)
    found = 0
    for _ in range(1000):
        estimates = [equal_runs(generator, units, is_clustered=is_clustered) for _ in range(tasks)]
        p_value = benchmark_difference(estimates, is_weighted_by_size=is_weighted_by_size).p_value
        found += p_value is not None and p_value <= 0.05
    assert found / 1000 <= 0.06


def equal_runs(generator: np.random.Generator, units: int, *, is_clustered: bool) -> DifferenceEstimate:
    """Graded samples; or passages of 1 to 11 questions each, some for one run and some for the other."""
    if not is_clustered:
        return difference_of_means(scores_of(generator.random(units), generator.random(units)))
    clusters = np.repeat(np.arange(units), generator.integers(1, 12, units))
    shares = generator.beta(1.6, 0.7, (2, units))[:, clusters]
    first, second = (generator.random(len(clusters)) < share for share in shares)
    return difference_of_means(scores_of(first, second, clusters))


def test_permutations_without_a_difference_keep_their_level() -> None:
    """1,000 pairs of equal runs with graded scores: p at most 0.05 in about one of twenty."""
    generator = np.random.default_rng(19)
    found = 0
    for _ in range(1000):
        shared = generator.random(25)
        first, second = (np.clip(shared + generator.normal(0, 0.2, 25), 0, 1).round(2) for _ in range(2))
        found += (difference_of_means(scores_of(first, second)).p_value or 1.0) <= 0.05
    assert stats.binomtest(found, 1000, 0.05).pvalue > 0.01


@first_cases(1, "repetitions", (500, 2000))
def test_the_interval_of_a_benchmark_covers_what_it_says(repetitions: int) -> None:
    """Benchmarks of four tasks in which the first model is right 5 points more often."""
    generator = np.random.default_rng(23)
    covered = 0
    for _ in range(repetitions):
        tasks = [
            difference_of_means(scores_of(generator.random(size) < 0.7, generator.random(size) < 0.65))
            for size in (50, 80, 120, 200)
        ]
        benchmark = benchmark_difference(tasks, is_weighted_by_size=False)
        assert benchmark.ci_low is not None
        assert benchmark.ci_high is not None
        covered += benchmark.ci_low <= 0.05 <= benchmark.ci_high
    assert stats.binomtest(covered, repetitions, 0.95).pvalue > 0.01
