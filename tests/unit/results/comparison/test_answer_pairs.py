"""Pairs of answers become scores, labels and clusters; rollouts are averaged or vote first."""

import numpy as np
import pytest

from services.results.comparison.answer_pairs import (
    PairGroup,
    SampleAnswers,
    label_pairs_of,
    score_pairs_of,
    tally_of,
)
from services.results.comparison.pair_differences import estimate_if_parsed, metric_difference
from services.results.scoring.answer_filters import FilterPipeline
from services.results.scoring.compiled_scoring import Average, CompiledMetric, ScoredMetric
from services.results.scoring.score import UNREAD, ScoreValue, Vote, sample_score
from services.results.statistics.columns import Numbers
from services.results.statistics.paired.difference_estimate import (
    EXACT_MCNEMAR,
    PAIRED_PERMUTATION,
    undefined,
)
from services.results.statistics.paired.mean_difference import NO_PAIRS
from services.results.statistics.sample_scores import rows_of_majority

MEAN = FilterPipeline()
ALL = Vote(100)
MAJORITY = FilterPipeline(vote=ALL)
FAILED = SampleAnswers(is_failed=True)


def said(*scores: ScoreValue, unparsed: int = 0) -> SampleAnswers:
    return SampleAnswers(scores, unparsed)


def group(first: SampleAnswers, second: SampleAnswers, count: int = 1, cluster: str = "") -> PairGroup:
    return PairGroup(first, second, count, cluster)


def metric(name: str, pipeline: FilterPipeline = MEAN, average: Average = Average.BINARY) -> ScoredMetric:
    return ScoredMetric(name, CompiledMetric(name, average=average), pipeline)


def test_rollouts_are_averaged() -> None:
    assert sample_score((1.0, 0.0, 1.0, 1.0)) == 0.75


def test_only_the_first_rollouts_vote() -> None:
    votes = [(0.0, 7), (1.0, 5), (1.0, 5)]
    assert [sample_score(votes, Vote(voters)) for voters in (1, 2, 3)] == [0.0, 0.0, 1.0]


def test_what_was_not_read_votes_only_where_it_counts() -> None:
    votes = [(0.0, UNREAD), (0.0, UNREAD), (1.0, 5)]
    assert [sample_score(votes, Vote(3, counts_unread=each)) for each in (False, True)] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("votes", "score"),
    [
        ([(0.0, 7), (1.0, 5), (1.0, 5)], 1.0),
        ([(0.0, 7), (1.0, 5), (1.0, 5), (0.0, 7)], 0.0),  # as many: the prediction given first
        ([(0.0, UNREAD), (0.0, UNREAD), (1.0, 5)], 1.0),  # what was not read does not vote
        ([(0.0, UNREAD)], 0.0),
    ],
)
def test_rollouts_vote_as_in_a_summary(votes: list[tuple[float, int]], score: float) -> None:
    assert sample_score(votes, ALL) == score
    ballots = np.array([np.nan if vote == UNREAD else vote for _, vote in votes])
    samples: Numbers = np.zeros(len(votes), dtype=np.int64)
    [row] = rows_of_majority(samples, np.arange(len(votes)), ballots)
    assert votes[row][0] == score


def test_failures_and_unparsed_answers_are_counted_by_sample_and_answer() -> None:
    groups = [
        group(FAILED, said(1.0), 2),
        group(said(1.0), FAILED, 3),
        group(FAILED, FAILED, 5),
        group(said(0.0, unparsed=1), said(0.0, 1.0, unparsed=2), 7),
    ]
    tally = tally_of(groups)
    assert (tally.first_failed, tally.second_failed) == (7, 8)
    assert (tally.first_unparsed, tally.second_unparsed) == (7, 14)
    assert metric_difference(metric("acc"), groups).pairs == 7


def test_a_sample_without_passage_is_a_cluster_of_its_own() -> None:
    groups = [
        group(said(1.0), said(0.0), 2, "p"),
        group(said(0.0), said(0.0), 1, "p"),
        group(said(1.0), said(0.0), 1, "q"),
        group(said(1.0), said(1.0), 3),
    ]
    pairs = score_pairs_of(groups, metric("acc"))
    assert pairs.clusters is not None
    assert (pairs.count, len(np.unique(pairs.clusters))) == (7, 5)
    assert metric_difference(metric("acc"), groups).clusters == 5


def test_labels_of_rollouts_share_the_weight_of_their_sample() -> None:
    groups = [group(said((1, 1), (1, 0)), said((1, 1), (1, 1)), 4), group(said((0, 0)), said((0, 1)), 6)]
    pairs = label_pairs_of(groups)
    assert (pairs.pairs, pairs.sizes.tolist(), pairs.clusters) == (10, [4, 6], 0)
    assert pairs.first.weights.tolist() == [0.5, 0.5, 1.0]
    estimate = metric_difference(metric("f1"), groups)
    assert estimate.first_mean == pytest.approx(2 * 2 / (2 * 2 + 2))
    assert estimate.second_mean == pytest.approx(2 * 4 / (2 * 4 + 6))


def test_labels_of_clusters_weigh_as_many_samples_as_there_are() -> None:
    groups = [group(said((1, 1)), said((1, 0)), 3, "p"), group(said((0, 0)), said((0, 0)), 2, "q")]
    pairs = label_pairs_of(groups)
    assert (pairs.pairs, pairs.sizes.tolist(), pairs.clusters) == (5, [1, 1], 2)
    assert pairs.first.weights.tolist() == [3.0, 2.0]


def test_f1_is_averaged_as_the_task_says() -> None:
    groups = [group(said((0, 0)), said((0, 1)), 8), group(said((1, 1)), said((1, 1)), 2)]
    macro = metric_difference(metric("f1", average=Average.MACRO), groups)
    assert macro.second_mean == pytest.approx((0 + 2 * 2 / (2 * 2 + 8)) / 2)
    assert metric_difference(metric("f1"), groups).second_mean == pytest.approx(2 * 2 / (2 * 2 + 8))


def test_a_macro_f1_is_over_the_labels_of_the_task_in_both_runs() -> None:
    """Else a label that only one run names would change the figure of the other."""
    macro = metric("f1", average=Average.MACRO)
    groups = [group(said((0, 0)), said((0, 0)), 4), group(said((1, 1)), said((1, 2)), 4)]
    assert metric_difference(macro, groups, 4).first_mean == pytest.approx(2 / 4)
    unparsed = group(said((0, -1), unparsed=1), said((0, 0)))
    first_less_second = (2 - 1) / 4
    estimate = estimate_if_parsed(macro, [*groups, unparsed], 4)
    assert estimate is not None
    assert estimate.difference == pytest.approx(first_less_second)


def test_graded_scores_that_happen_to_be_0_are_not_taken_for_right_or_wrong() -> None:
    groups = [group(said(0.0), said(0.0), 18), group(said(1.0), said(0.0), 2)]
    graded, judged = (metric_difference(metric(name), groups) for name in ("bleu_diff", "exact_match"))
    assert (graded.test, graded.only_first_right) == (PAIRED_PERMUTATION, 0)
    assert (judged.test, judged.only_first_right) == (EXACT_MCNEMAR, 2)
    all_zero = metric_difference(metric("bleu_diff"), groups[:1])
    assert (all_zero.p_value, all_zero.ci_low) == (1.0, None)


def test_numbers_that_were_not_read_are_no_pairs() -> None:
    read = [group(said((at, at + 0.5)), said((at, -at))) for at in (1.0, 2.0, 3.0, 4.0)]
    groups = [*read, group(said((9.0, 9.0)), said(unparsed=1))]
    estimate = metric_difference(metric("pearson"), groups)
    assert estimate.pairs == 4
    assert [estimate.first_mean, estimate.second_mean] == pytest.approx([1.0, -1.0])
    assert tally_of(groups).second_unparsed == 1


@pytest.mark.parametrize("name", ["acc", "f1", "pearson"])
def test_the_difference_if_parsed_leaves_out_what_either_could_not_read(name: str) -> None:
    values: dict[str, list[ScoreValue]] = {
        "acc": [1.0, 0.0, 1.0, 0.0],
        "f1": [(1, 1), (1, 0), (0, 0), (0, 1)],
        "pearson": [(1.0, 1.0), (2.0, 1.5), (3.0, 3.5), (4.0, 1.0)],
    }
    parsed = [
        group(said(one), said(other)) for one, other in zip(values[name], values[name][::-1], strict=True)
    ]
    unparsed = group(said(values[name][1], unparsed=1), said(values[name][0]))
    expected = metric_difference(metric(name), parsed)
    assert estimate_if_parsed(metric(name), [*parsed, unparsed]) == expected
    assert estimate_if_parsed(metric(name), parsed) is None
    assert estimate_if_parsed(metric(name), [unparsed]) == undefined(0, NO_PAIRS)
    # What the other run failed on does not count, parsed or not.
    assert estimate_if_parsed(metric(name), [*parsed, group(said(1.0, unparsed=1), FAILED)]) is None


def test_without_pairs_nothing_is_known() -> None:
    for name in ("acc", "f1", "pearson", "spearman"):
        estimate = metric_difference(metric(name), [group(FAILED, said(1.0))])
        assert (estimate.pairs, estimate.difference, estimate.p_value) == (0, None, None)
    assert [metric(name).has_numbers for name in ("acc", "squad_f1", "mcc", "spearman")] == [
        True,
        True,
        False,
        False,
    ]
