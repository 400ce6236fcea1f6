"""Figures of judges that are corrected by marks: equal to other formulas, and covering what they promise."""

import numpy as np
import pytest
from numpy.typing import NDArray
from statsmodels.regression.linear_model import WLS

from services.results.statistics.columns import Array
from services.results.statistics.judged.judged_scores import JudgedScores, confusion, judged_scores
from services.results.statistics.judged.prediction_powered import (
    MIN_MARKS,
    CalibratedFigure,
    calibrated_difference,
    calibrated_figure,
)
from tests.fakes.statistics.judged_runs import Judge, drawn_judge, marked

JUDGE = Judge(misses=0.25, false_alarms=0.1)


def one_run(samples: int, marks: int, *, seed: int = 3, judge: Judge = JUDGE) -> JudgedScores:
    generator = np.random.default_rng(seed)
    right = (generator.random(samples) < 0.6).astype(np.float64)
    return marked(generator, right, judge.verdicts(generator, right), marks)


def width(figure: CalibratedFigure) -> float:
    assert figure.ci_low is not None
    assert figure.ci_high is not None
    return figure.ci_high - figure.ci_low


def test_the_figure_is_that_of_the_paper_and_its_weight_that_of_a_regression() -> None:
    scores = one_run(3_000, 400)
    figure = calibrated_figure(scores)
    is_marked = np.isfinite(scores.marks)
    marks, judged, others = scores.marks[is_marked], scores.verdicts[is_marked], scores.verdicts[~is_marked]
    assert figure.weight is not None
    # PPI++ takes the judge's mean over unmarked samples alone, so that its weight is smaller by their share.
    weight_of_paper = figure.weight * len(others) / len(scores.verdicts)
    assert figure.mean == pytest.approx(marks.mean() + weight_of_paper * (others.mean() - judged.mean()))
    design = np.stack([np.ones(402), np.append(judged, [0.0, 1.0])], axis=1)
    fitted = WLS(np.append(marks, [1.0, 0.0]), design, weights=np.append(np.ones(400), [0.5, 0.5])).fit()
    assert figure.weight == pytest.approx(fitted.params[1], rel=0.01)
    covariance = np.cov(marks, judged)
    tuned = covariance[0, 1] / ((1 + 400 / len(others)) * scores.verdicts.var())
    assert weight_of_paper == pytest.approx(tuned, rel=0.03)
    variance = np.var(marks - tuned * judged) / 400 + tuned**2 * np.var(others) / len(others)
    assert figure.stderr == pytest.approx(np.sqrt(variance), rel=0.03)


def test_the_error_is_that_of_a_bootstrap() -> None:
    scores = one_run(600, 150)
    generator = np.random.default_rng(4)
    means = []
    for _ in range(600):
        drawn = scores.only(generator.integers(600, size=600))
        # Each draw is a sample of its own.
        mean = calibrated_figure(drawn).mean
        assert mean is not None
        means.append(mean)
    assert calibrated_figure(scores).stderr == pytest.approx(np.std(means), rel=0.08)


def test_a_judge_who_guesses_counts_little_and_one_without_error_almost_wholly() -> None:
    guessing = calibrated_figure(one_run(2_000, 300, judge=Judge(0.5, 0.5)))
    exact = calibrated_figure(one_run(2_000, 300, judge=Judge(0.0, 0.0)))
    assert guessing.weight is not None
    assert exact.weight is not None
    assert guessing.weight < 0.15
    assert exact.weight > 0.97
    # No error among 300 marks is no proof that there is none.
    assert width(exact) > 2 * 1.96 * np.sqrt(0.24 / 2_000)


def test_below_thirty_marks_the_raw_figure_stands_alone() -> None:
    few, enough = (calibrated_figure(one_run(500, marks)) for marks in (MIN_MARKS - 1, MIN_MARKS))
    assert (few.is_calibrated, few.marks, few.ci_low, few.more_marks) == (False, 29, None, None)
    assert few.raw is not None
    assert enough.is_calibrated
    assert calibrated_figure(one_run(500, 0)).raw is not None
    assert calibrated_figure(JudgedScores(*(np.empty(0) for _ in range(4)))) == CalibratedFigure()  # type: ignore[arg-type]  # empty


def test_where_all_is_marked_the_figure_is_that_of_people() -> None:
    scores = one_run(200, 200)
    assert calibrated_figure(scores).mean == pytest.approx(scores.marks.mean())


def test_so_many_more_marks_halve_the_interval() -> None:
    before, after = [], []
    for seed in range(20):
        figure = calibrated_figure(one_run(5_000, 200, seed=seed))
        assert figure.more_marks is not None
        more = 200 + figure.more_marks
        before.append(width(figure))
        after.append(width(calibrated_figure(one_run(5_000, more, seed=seed + 100))))
    assert np.mean(after) == pytest.approx(np.mean(before) / 2, rel=0.03)
    # Of 300 samples even all marks are too few.
    assert calibrated_figure(one_run(300, 100)).more_marks is None


def test_rows_of_a_sample_are_averaged_and_those_without_verdict_left_out() -> None:
    nan = np.nan
    scores = judged_scores(
        np.array([7, 3, 3, 7, 5, 9]),
        np.array([1.0, 0.0, 1.0, 0.5, nan, 1.0]),
        np.array([1.0, nan, 1.0, 0.0, 1.0, nan]),
        np.array([0, 1, 1, 0, 2, 1]),
    )
    assert scores.samples.tolist() == [3, 7, 9]
    assert scores.verdicts.tolist() == [0.5, 0.75, 1.0]
    np.testing.assert_array_equal(scores.marks, [1.0, 0.5, nan])
    np.testing.assert_array_equal(scores.marked_verdicts, [1.0, 0.75, nan])
    assert scores.clusters is not None
    assert scores.clusters.tolist() == [1, 0, 1]
    assert scores.mark_count == 2


def test_the_confusion_counts_marks_by_verdicts() -> None:
    scores = JudgedScores(
        np.arange(5),
        np.array([1.0, 0.0, 0.5, 1.0, 1.0]),
        np.array([1.0, 1.0, 0.0, 0.0, np.nan]),
        np.array([1.0, 0.0, 0.5, 1.0, np.nan]),
    )
    found = confusion(scores)
    assert (found.right_as_right, found.right_as_wrong) == (1.0, 1.0)
    assert (found.wrong_as_right, found.wrong_as_wrong) == (1.5, 0.5)
    assert found.error_rate == 2.5 / 4


def test_repeating_answers_and_verdicts_makes_no_new_samples() -> None:
    """The rollouts of a sample, or samples of a cluster, that say the same count once."""
    scores = one_run(1_000, 200)
    twice = scores.only(np.repeat(np.arange(1_000), 2))
    clustered = JudgedScores(
        np.arange(2_000), twice.verdicts, twice.marks, twice.marked_verdicts, np.repeat(np.arange(1_000), 2)
    )
    rows = judged_scores(np.repeat(scores.samples, 2), twice.verdicts, twice.marks)
    once = calibrated_figure(scores)
    assert calibrated_figure(rows) == once
    found = calibrated_figure(clustered)
    assert found.mean == pytest.approx(once.mean, abs=1e-3)
    assert found.stderr == pytest.approx(once.stderr, rel=0.02)
    assert found.degrees_of_freedom == once.degrees_of_freedom


def test_the_difference_of_two_runs_is_paired_by_sample() -> None:
    scores = one_run(1_000, 300)
    same = calibrated_difference(scores, scores)
    assert (same.pairs, same.difference) == (1_000, 0.0)
    lower = scores.only(np.arange(100, 1_000))
    assert calibrated_difference(scores, lower).pairs == 900
    alone = calibrated_figure(scores).stderr
    assert same.stderr is not None
    assert alone is not None
    # Only the pseudo marks of the two are not the same.
    assert same.stderr < 0.2 * np.sqrt(2) * alone
    assert calibrated_difference(scores, one_run(1_000, 20)).difference is None


def coverage(judges: int, samples: int, marks: int, *, has_position_bias: bool) -> tuple[float, float]:
    """Of the figure, and of the difference between two runs, each with a judge of its own errors."""
    generator = np.random.default_rng(7)
    of_figure = of_difference = 0
    for _ in range(judges):
        judge = drawn_judge(generator, has_position_bias=has_position_bias)
        share = generator.uniform(0.3, 0.9)
        hardness, second_share = generator.random(samples), share - 0.05
        # Another model gets mostly the same samples right.
        second_hardness = np.where(generator.random(samples) < 0.3, generator.random(samples), hardness)
        first, second = (
            marked(generator, right, judge.verdicts(generator, right), marks)
            for right in (_right(hardness < share), _right(second_hardness < second_share))
        )
        figure, difference = calibrated_figure(first), calibrated_difference(first, second)
        of_figure += _covers(figure.ci_low, figure.ci_high, share)
        of_difference += _covers(difference.ci_low, difference.ci_high, share - second_share)
    return of_figure / judges, of_difference / judges


def _right(is_right: NDArray[np.bool_]) -> Array:
    return is_right.astype(np.float64)


def _covers(low: float | None, high: float | None, value: float) -> bool:
    assert low is not None
    assert high is not None
    return low <= value <= high


@pytest.mark.parametrize("has_position_bias", [False, True])
@pytest.mark.parametrize(("samples", "marks"), [(300, 30), (1_000, 100)])
def test_intervals_cover_whatever_the_errors_of_the_judge(
    samples: int, marks: int, *, has_position_bias: bool
) -> None:
    of_figure, of_difference = coverage(300, samples, marks, has_position_bias=has_position_bias)
    # Three standard errors of 300 draws are 3.5 points.
    assert 0.915 <= of_figure <= 0.985
    assert 0.915 <= of_difference <= 0.985


@pytest.mark.thorough
@pytest.mark.parametrize("has_position_bias", [False, True])
@pytest.mark.parametrize(("samples", "marks"), [(300, 30), (1_000, 30), (1_000, 100), (2_000, 300)])
def test_intervals_cover_over_ten_thousand_judges(
    samples: int, marks: int, *, has_position_bias: bool
) -> None:
    rates = coverage(10_000, samples, marks, has_position_bias=has_position_bias)
    assert all(0.93 <= rate <= 0.97 for rate in rates)
