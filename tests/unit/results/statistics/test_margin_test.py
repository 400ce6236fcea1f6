"""Tests of a paired difference against a margin: at their level, and equal to what others compute."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.weightstats import DescrStatsW

from services.results.statistics.paired.margin_test import (
    MarginTest,
    NoDifferenceTest,
    ScoreTest,
    StudentTest,
    margin_test_of,
)
from services.results.statistics.paired.mean_difference import difference_of_means
from tests.fakes.results.paired_samples import found_share, right_or_wrong, scores_of

DIFFERENCES = np.random.default_rng(5).normal(-0.02, 0.3, 150)


def reference_p_above(first: int, second: int, pairs: int, bound: float) -> float:
    """The score test with the likelihood maximised by scipy, instead of by Tango's formula."""

    def negative_likelihood(share: float) -> float:
        shares = np.maximum([share + bound, share, 1 - 2 * share - bound], 1e-300)
        return -float(np.array([first, second, pairs - first - second]) @ np.log(shares))

    ends = max(0.0, -bound), (1 - bound) / 2
    share = optimize.minimize_scalar(
        negative_likelihood, bounds=ends, method="bounded", options={"xatol": 1e-12}
    ).x
    error = np.sqrt((2 * share + bound - bound**2) / pairs)
    return float(stats.norm.sf(((first - second) / pairs - bound) / error))


@pytest.mark.parametrize("differing", [(0, 0), (0, 5), (7, 0), (12, 20), (40, 41)])
@pytest.mark.parametrize("bound", [-0.1, -0.01, 0.03])
def test_the_test_of_shares_is_the_score_test(differing: tuple[int, int], bound: float) -> None:
    found = ScoreTest(*differing, 200).p_above(bound)
    assert found == pytest.approx(reference_p_above(*differing, 200, bound), abs=1e-5)


def test_without_a_margin_the_score_test_is_mcnemars() -> None:
    two_sided = mcnemar([[0, 12], [30, 0]], exact=False, correction=False).pvalue
    assert ScoreTest(12, 30, 500).reversed.p_above(0.0) == pytest.approx(two_sided / 2)


@pytest.mark.parametrize("bound", [-0.05, 0.0, 0.02])
def test_the_test_of_other_figures_is_students(bound: float) -> None:
    estimate = difference_of_means(scores_of(DIFFERENCES, np.zeros(150)))
    test = margin_test_of(estimate, 1.0)
    reference = DescrStatsW(DIFFERENCES).ttest_mean(bound, alternative="larger")[1]
    assert test is not None
    assert test.p_above(bound) == pytest.approx(reference)
    assert test.lower_limit(0.05) == pytest.approx(
        DescrStatsW(DIFFERENCES).tconfint_mean(0.05, alternative="larger")[0]
    )


@pytest.mark.parametrize(
    "test",
    [ScoreTest(12, 20, 400), ScoreTest(0, 0, 30), StudentTest(-0.02, 0.01, 40.0), NoDifferenceTest(80, 1.0)],
)
@pytest.mark.parametrize("level", [0.05, 0.001])
def test_a_limit_is_the_bound_that_has_its_level(test: MarginTest, level: float) -> None:
    assert test.p_above(test.lower_limit(level)) == pytest.approx(level, rel=1e-4)


def test_pairs_without_any_difference_show_as_much_as_their_number() -> None:
    same = scores_of(np.full(300, 0.4), np.full(300, 0.4))
    test = margin_test_of(difference_of_means(same), 1.0)
    assert test is not None
    # No difference among 300: the rule of three says 1 %.
    assert test.lower_limit(0.05) == pytest.approx(-3 / 300, rel=0.01)
    assert test.p_above(-0.01) == pytest.approx(stats.binom.pmf(0, 300, 0.01))
    assert margin_test_of(difference_of_means(same), None) is None


def test_pairs_of_right_and_wrong_answers_have_the_score_test() -> None:
    estimate = difference_of_means(right_or_wrong(both=50, only_first=20, only_second=5, neither=25))
    assert margin_test_of(estimate, 1.0) == ScoreTest(20, 5, 100)
    # Those of a benchmark of several tasks have another one.
    several = replace(estimate, test="stratified t", degrees_of_freedom=99.0)
    assert isinstance(margin_test_of(several, 1.0), StudentTest)


@pytest.mark.parametrize(
    ("pairs", "margin", "gained"),
    [(100, 0.05, 0.0), (100, 0.05, 0.05), (500, 0.01, 0.01), (500, 0.01, 0.05), (300, 0.0, 0.04)],
)
@pytest.mark.parametrize("level", [0.05, 0.05 / 9])
def test_a_task_that_is_worse_by_the_margin_seldom_passes(
    pairs: int, margin: float, gained: float, level: float
) -> None:
    assert found_share(pairs, gained, gained + margin, -margin, level) <= 1.06 * level


@pytest.mark.parametrize(("pairs", "differing"), [(100, 10), (600, 24), (600, 60), (900, 230)])
@pytest.mark.parametrize(("bound", "level"), [(0.0, 0.05), (0.01, 0.05), (0.01, 0.01), (0.05, 0.05 / 57)])
def test_the_distance_is_decided_in_four_of_five_repetitions(
    pairs: int, differing: int, bound: float, level: float
) -> None:
    half = differing // 2
    distance = ScoreTest(half, half, pairs).decided_distance(bound, level)
    assert distance is not None
    difference = bound + distance
    # All that differ are won where more would have to be.
    share = max(differing / pairs, difference)
    found = found_share(pairs, (share + difference) / 2, (share - difference) / 2, bound, level)
    assert found == pytest.approx(0.8, abs=0.01)


def test_the_distance_over_very_many_pairs_is_that_of_the_normal_approximation() -> None:
    distance = ScoreTest(5_000, 5_000, 100_000).decided_distance(0.01, 0.05)
    assert distance == pytest.approx((stats.norm.isf(0.05) + stats.norm.ppf(0.8)) * 0.001, rel=0.01)


def test_two_pairs_decide_no_distance() -> None:
    assert ScoreTest(0, 0, 2).decided_distance(0.01, 0.001) is None


@pytest.mark.parametrize("differing", [0.01, 0.04, 0.2])
@pytest.mark.parametrize("level", [0.05, 0.01])
def test_so_many_times_as_many_pairs_pass_in_four_of_five_repetitions(differing: float, level: float) -> None:
    half, margin = round(500 * differing), 0.03
    pairs = int(np.ceil(1_000 * ScoreTest(half, half, 1_000).times_needed(-margin, level)))
    found = found_share(pairs, differing / 2, differing / 2, -margin, level)
    # Two or three differing pairs are all that a hundred rows have.
    assert found == pytest.approx(0.8, abs=0.03 if differing > 0.01 else 0.1)
