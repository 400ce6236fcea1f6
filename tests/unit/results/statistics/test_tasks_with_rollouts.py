"""Rollouts of tasks: a figure is the mean of task means, and two runs are paired by task.

Expected values come from scipy and from enumerations over whole tasks.
"""

import itertools
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from proctor.values.scoring import OutputType
from services.results.comparison.answer_pairs import PairGroup, SampleAnswers, score_pairs_of
from services.results.scoring.compiled_scoring import CompiledMetric, CompiledScoring
from services.results.statistics.figure import figure_of
from services.results.statistics.paired.difference_estimate import DifferenceEstimate
from services.results.statistics.paired.mean_difference import difference_of_means
from services.results.statistics.sample_scores import ScoreColumns

# Each task has the scores of its rollouts.
Scores = list[list[float]]
REWARDS = st.lists(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=5), min_size=3, max_size=8
)


def compared(first: Scores, second: Scores, metric: str = "reward") -> DifferenceEstimate:
    """One list of scores per task and run."""
    groups = [
        PairGroup(SampleAnswers(tuple(one)), SampleAnswers(tuple(other)), 1)
        for one, other in zip(first, second, strict=True)
    ]
    [scored] = CompiledScoring(OutputType.GENERATE_UNTIL, (CompiledMetric(metric),)).scored_metrics
    return difference_of_means(score_pairs_of(groups, scored))


@given(REWARDS)
def test_the_interval_of_a_score_is_that_of_the_means_of_tasks(scores: Scores) -> None:
    means = [float(np.mean(one)) for one in scores]
    assume(np.std(means) > 1e-9)
    samples = np.repeat(np.arange(len(scores)), [len(one) for one in scores])
    rollouts = np.concatenate([np.arange(len(one)) for one in scores])
    figure = figure_of("reward", ScoreColumns(np.concatenate(scores), samples, rollouts))
    low, high = stats.t.interval(0.95, len(means) - 1, np.mean(means), stats.sem(means))
    assert (figure.mean, figure.stderr) == pytest.approx((np.mean(means), stats.sem(means)))
    # No score is below 0 or above 1.
    assert (figure.ci_low, figure.ci_high) == pytest.approx((max(0.0, low), min(1.0, high)))
    assert (figure.n, figure.interval_method) == (len(means), "student-t")


@given(REWARDS, st.randoms(use_true_random=False))
def test_two_runs_are_paired_by_task(first: Scores, random: Random) -> None:
    """The interval is that of a paired t-test of task means; the test flips the signs of whole tasks."""
    second = [[random.choice([0.0, 0.5, 1.0]) for _ in range(random.randint(1, 4))] for _ in first]
    differences = np.array([np.mean(one) - np.mean(other) for one, other in zip(first, second, strict=True)])
    assume(np.std(differences) > 1e-9)
    found = compared(first, second)
    expected = stats.ttest_1samp(differences, 0.0).confidence_interval(0.95)
    assert found.difference == pytest.approx(differences.mean())
    assert (found.ci_low, found.ci_high) == pytest.approx((expected.low, expected.high))
    flips = np.array(list(itertools.product([1, -1], repeat=len(differences)))) @ differences
    assert found.p_value == pytest.approx(np.mean(np.abs(flips) >= abs(differences.sum()) - 1e-9))
    assert found.pairs == len(first)


def test_rollouts_are_no_further_pairs() -> None:
    """Two models of the same rates per task differ by chance in at most 5 % of comparisons of 20 tasks, five
    rollouts each; McNemar's test over the rollouts would find a difference more often."""
    random = np.random.default_rng(7)
    found, over_rollouts = 0, 0
    comparisons = 400
    for _ in range(comparisons):
        # Hard and easy tasks; each model is better at some of them.
        first_rates = random.beta(0.5, 0.5, 20)
        second_rates = np.clip(first_rates + random.normal(0, 0.25, 20), 0, 1)
        swapped = random.random(20) < 0.5
        rates = np.where(swapped, [second_rates, first_rates], [first_rates, second_rates])
        runs = random.random((2, 20, 5)) < rates[:, :, np.newaxis]
        first, second = (run.astype(float).tolist() for run in runs)
        p_value = compared(first, second, "pass@1").p_value
        assert p_value is not None
        found += p_value <= 0.05
        only = [int((runs[0] & ~runs[1]).sum()), int((runs[1] & ~runs[0]).sum())]
        over_rollouts += stats.binomtest(min(only), max(sum(only), 1)).pvalue <= 0.05
    assert found / comparisons <= 0.065
    assert over_rollouts > found
