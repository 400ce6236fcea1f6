"""Several answers per sample: pass@k, spread within samples, and votes."""

import itertools
import math
from collections.abc import Callable
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.values.outcome import Answer
from proctor.values.scoring import OutputType
from services.results.outcomes.outcome import ScoredRow
from services.results.scoring.compiled_scoring import CompiledMetric, CompiledScoring, read_filters
from services.results.scoring.score import ScoreValue, ScoringTarget
from services.results.scoring.score_answer import score_answer
from services.results.statistics.figure import Figure, figure_of
from services.results.statistics.sample_scores import (
    ScoreColumns,
    pass_all,
    pass_at,
    pass_sizes,
    rows_of_majority,
)
from services.results.summaries.task_columns import TaskColumns, chunk_of

LAST_NUMBER = '{"function": "regex", "regex_pattern": "(\\\\d+)", "group_select": -1}'
ONE_BY_ONE = f'{{"name": "one", "filter": [{LAST_NUMBER}]}}'
VOTED = f'{{"name": "voted", "filter": [{LAST_NUMBER}, {{"function": "majority_vote"}}]}}'


def rollouts_of(*scores: list[float]) -> ScoreColumns:
    """A list of scores per sample."""
    samples = np.repeat(np.arange(len(scores)), [len(one) for one in scores])
    rollouts = np.concatenate([np.arange(len(one)) for one in scores])
    return ScoreColumns(np.concatenate(scores).astype(float), samples, rollouts)


def task(*metrics: str, filters: str = "", spoken: bool = False) -> CompiledScoring:
    output_type = OutputType.MULTIPLE_CHOICE if spoken else OutputType.GENERATE_UNTIL
    used = tuple(CompiledMetric(name) for name in metrics)
    return CompiledScoring(output_type, used, read_filters(filters), is_generated=spoken)


def figures(scoring: CompiledScoring, target: ScoringTarget, *samples: list[str]) -> dict[str, Figure]:
    """Of texts per sample and rollout."""
    rows: list[ScoredRow] = [
        (sample, rollout, score_answer(scoring, target, Answer(text)).scores)
        for sample, texts in enumerate(samples)
        for rollout, text in enumerate(texts)
    ]
    columns = TaskColumns(scoring)
    columns.add_rows(rows)
    return columns.figures(has_rollouts=len(samples[0]) > 1, clusters=None)


def test_answers_that_are_partly_right_have_no_pass_at_k() -> None:
    columns = TaskColumns(task("exact_match"))
    columns.add_rows([(0, 0, {"exact_match": 0.5}), (0, 1, {"exact_match": 1.0})])
    assert list(columns.figures(has_rollouts=True, clusters=None)) == ["exact_match"]


@pytest.mark.parametrize(("rollouts", "sizes"), [(1, [1]), (2, [1, 2]), (4, [1, 2, 4]), (6, [1, 2, 4, 6])])
def test_pass_sizes_are_powers_of_two_and_the_rollouts(rollouts: int, sizes: list[int]) -> None:
    assert pass_sizes(rollouts) == sizes


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_pass_at_k_is_the_share_of_draws_with_a_right_answer(k: int) -> None:
    samples = [[1, 0, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 0]]
    shares = [np.mean([max(draw) for draw in itertools.combinations(one, k)]) for one in samples]
    columns = rollouts_of(*[[float(score) for score in one] for one in samples])
    assert figure_of("pass@k", pass_at(k, columns.by_sample())).mean == pytest.approx(np.mean(shares))


@given(
    answers=st.lists(st.lists(st.booleans(), min_size=3, max_size=7), min_size=1, max_size=6),
    k=st.integers(2, 5),
)
def test_pass_at_k_and_pass_all_are_shares_of_all_draws(answers: list[list[bool]], k: int) -> None:
    """Against an enumeration of the draws of k answers, task by task; tasks with fewer answers have none."""
    scores = rollouts_of(*[[float(each) for each in one] for one in answers]).by_sample()
    draws = [list(itertools.combinations(one, k)) for one in answers if len(one) >= k]
    expected = [
        np.mean([np.mean([judge(draw) for draw in of_task]) for of_task in draws]) if draws else None
        for judge in (any, all)
    ]
    found = [figure_of("pass@k", pass_at(k, scores)).mean, figure_of("pass^k", pass_all(k, scores)).mean]
    assert found == [None if each is None else pytest.approx(each) for each in expected]


def test_samples_with_too_few_answers_have_no_pass_at_k() -> None:
    figure = figure_of("pass@4", pass_at(4, rollouts_of([1, 0, 0, 0], [1, 1]).by_sample()))
    assert (figure.mean, figure.n) == (1.0, 1)
    assert figure_of("pass@4", pass_at(4, rollouts_of([1, 0]).by_sample())) == Figure()


def test_the_spread_within_samples_is_the_mean_of_their_deviations() -> None:
    figure = figure_of("squad_f1", rollouts_of([0.2, 0.4, 0.9], [0.5, 0.5, 0.5], [1.0]))
    assert figure.within_std == pytest.approx((np.std([0.2, 0.4, 0.9], ddof=1) + 0.0) / 2)


def test_one_rollout_has_no_spread_within_samples() -> None:
    assert figure_of("acc", ScoreColumns(np.array([1.0, 0.0]))).within_std is None


@pytest.mark.parametrize(
    ("votes", "row"),
    [([7, 8, 8], 1), ([8, 7, 7, 8], 0), ([math.nan, math.nan, 8], 2), ([math.nan, 9, 8], 1)],
)
def test_the_most_frequent_vote_wins_and_of_equals_the_first(votes: list[float], row: int) -> None:
    positions = np.arange(len(votes))
    assert rows_of_majority(np.zeros_like(positions), positions, np.array(votes)).tolist() == [row]
    # The rows may come in any order.
    back = positions[::-1]
    [chosen] = rows_of_majority(np.zeros_like(positions), back, np.array(votes)[back])
    assert back[chosen] == row


def test_a_sample_without_a_vote_keeps_a_row() -> None:
    assert rows_of_majority(np.array([4, 4]), np.array([0, 1]), np.full(2, math.nan)).tolist() == [0]


def test_a_majority_filter_scores_what_most_rollouts_say() -> None:
    scoring = task("exact_match", filters=f"[{ONE_BY_ONE}, {VOTED}]")
    answers = (["so 4", "4", "5"], ["4", "6", "6"], ["none", "none", "4"], ["none", "none", "none"])
    found = figures(scoring, ScoringTarget(texts=("4",)), *answers)
    assert found["exact_match,one"].mean == pytest.approx((2 / 3 + 1 / 3 + 1 / 3 + 0) / 4)
    voted = found["exact_match,voted"]
    assert (voted.mean, voted.n, voted.interval_method) == (0.5, 4, "wilson")
    assert voted.std == voted.stderr
    assert list(found) == [
        "exact_match,one",
        "exact_match,voted",
        *("pass@1,one", "pass@2,one", "pass@3,one", "pass^2,one", "pass^3,one"),
    ]
    assert (found["pass@3,one"].mean, found["pass^3,one"].mean) == (0.75, 0.0)


def test_only_the_first_rollouts_vote_where_a_filter_takes_them() -> None:
    steps = '[{"function": "take_first_k", "k": %d}, {"function": "majority_vote"}]'
    filters = ", ".join(f'{{"name": "maj@{k}", "filter": {steps % k}}}' for k in (1, 2, 3, 4))
    answers = (["5", "4", "4"], ["4", "5", "5"], ["4", "4", "4"])
    found = figures(task("exact_match", filters=f"[{filters}]"), ScoringTarget(texts=("4",)), *answers)
    means = [found[f"exact_match,maj@{k}"].mean for k in (1, 2, 3, 4)]
    assert means == [pytest.approx(share / 3) for share in (2, 2, 2, 2)]
    assert found["exact_match,maj@1"].n == 3
    only = figures(task("exact_match", filters=f"[{filters}]"), ScoringTarget(texts=("4",)), answers[0])
    assert [only[f"exact_match,maj@{k}"].mean for k in (1, 2, 3)] == [0.0, 0.0, 1.0]


def test_what_was_not_read_wins_a_vote_where_it_takes_part() -> None:
    filters = VOTED.replace('"majority_vote"', '"majority_vote", "unparsed_votes": true')
    assert filters != VOTED
    target, said = ScoringTarget(texts=("4",)), (["none", "none", "4"], ["4", "none", "4"])
    assert figures(task("exact_match", filters=f"[{VOTED}]"), target, *said)["exact_match"].mean == 1.0
    assert figures(task("exact_match", filters=f"[{filters}]"), target, *said)["exact_match"].mean == 0.5


def test_a_majority_of_one_rollout_is_the_answer() -> None:
    found = figures(task("exact_match", filters=f"[{VOTED}]"), ScoringTarget(texts=("4",)), ["4"], ["5"])
    assert list(found) == ["exact_match"]
    assert (found["exact_match"].mean, found["exact_match"].n) == (0.5, 2)


def test_rollouts_vote_over_choices_too() -> None:
    vote = '[{"name": "vote", "filter": [{"function": "majority_vote"}]}]'
    target = ScoringTarget((" no", " yes"), 1)
    answers = (["yes", "no", "Yes."], ["hm", "no", "hm"], ["hm", "hm", "hm"])
    found = figures(task("acc", "f1", filters=vote, spoken=True), target, *answers)
    assert found["acc"].mean == pytest.approx(1 / 3)
    assert found["f1"].mean == pytest.approx(2 * 1 / (2 * 1 + 2))
    assert found["f1"].n == 3


def test_pass_at_k_is_of_the_first_metric_that_is_right_or_wrong() -> None:
    found = figures(
        task("squad_f1", "contains", "exact_match"), ScoringTarget(texts=("a b",)), ["x a b", "a"]
    )
    assert list(found) == ["squad_f1", "contains", "exact_match", "pass@1", "pass@2", "pass^2"]
    assert found["pass@1"].mean == found["contains"].mean == 0.5


def test_figures_do_not_depend_on_how_the_answers_came() -> None:
    scoring = task("exact_match", "mcc", "pearson")
    generator = np.random.default_rng(4)
    rows: list[ScoredRow] = [
        (sample, rollout, {key: value(generator) for key, value in DRAWN.items()})
        for sample in range(3000)
        for rollout in range(generator.integers(1, 4))
    ]
    whole, bit_by_bit = TaskColumns(scoring), TaskColumns(scoring)
    whole.add(chunk_of(rows, whole.keys))
    for start in range(0, len(rows), 7):
        bit_by_bit.add_rows(rows[start : start + 7])
    expected = whole.figures(has_rollouts=True, clusters=None)
    found = bit_by_bit.figures(has_rollouts=True, clusters=None)
    assert found.keys() == expected.keys()
    for key, figure in found.items():
        assert figure.interval_method == expected[key].interval_method
        assert astuple(figure)[:6] == pytest.approx(astuple(expected[key])[:6], rel=1e-12), key


DRAWN: dict[str, Callable[[np.random.Generator], ScoreValue]] = {
    "exact_match": lambda generator: float(generator.integers(2)),
    "mcc": lambda generator: (int(generator.integers(3)), int(generator.integers(3))),
    "pearson": lambda generator: (float(generator.normal()), float(generator.normal())),
}


def test_votes_of_no_answers_have_no_figure() -> None:
    columns = TaskColumns(task("exact_match", filters=f"[{VOTED}]"))
    assert list(columns.figures(has_rollouts=True, clusters=None).values()) == [Figure()]
