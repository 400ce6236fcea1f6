"""Correlations equal scipy's, and are undefined where nothing varies."""

import json
import tracemalloc
from dataclasses import astuple

import numpy as np
import pytest
from scipy import stats

from proctor.values.outcome import Answer
from proctor.values.scoring import OutputType
from services.results.scoring.compiled_scoring import CompiledMetric, CompiledScoring
from services.results.scoring.score import ScoringTarget
from services.results.scoring.score_answer import score_answer
from services.results.statistics import correlations
from services.results.statistics import figure as figure_module
from services.results.statistics.columns import PairColumns, ScoreChunk
from services.results.statistics.figure import Figure, figure_of
from services.results.summaries.task_columns import TaskColumns

BOOTSTRAP_BYTES = 48_000_000
GENERATOR = np.random.default_rng(3)
GOLD = GENERATOR.integers(0, 6, 80).astype(float)
NAMED = np.round(GOLD + GENERATOR.normal(size=80), 1)


def test_correlations_are_those_of_scipy() -> None:
    columns = PairColumns(GOLD, NAMED)
    assert figure_of("pearson", columns).mean == pytest.approx(stats.pearsonr(GOLD, NAMED)[0], abs=1e-12)
    assert figure_of("spearman", columns).mean == pytest.approx(stats.spearmanr(GOLD, NAMED)[0], abs=1e-12)


@pytest.mark.parametrize("block", [1, 7, 80])
def test_blocks_make_no_difference(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = np.repeat(np.arange(40), 2)
    columns = PairColumns(GOLD, NAMED, samples, np.tile(np.arange(2), 40))
    whole = {metric: figure_of(metric, columns) for metric in ("pearson", "spearman")}
    monkeypatch.setattr(correlations, "BLOCK_ROWS", block)
    monkeypatch.setattr(correlations, "CELLS_AT_A_TIME", 800)
    for metric, figure in whole.items():
        assert astuple(figure_of(metric, columns)) == pytest.approx(astuple(figure), abs=1e-12)


def test_positions_stand_for_numbers_in_a_rank_correlation() -> None:
    positions = correlations.positions_of(NAMED)
    assert positions.dtype == np.uint32
    assert (np.unique(NAMED)[positions] == NAMED).all()
    of_positions = figure_of("spearman", PairColumns(correlations.positions_of(GOLD), positions))
    assert of_positions == figure_of("spearman", PairColumns(GOLD, NAMED))


def test_unsorted_keys_are_the_same_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure_module, "MAX_UNITS", 20)
    samples, order = np.repeat(np.arange(40), 2), GENERATOR.permutation(80)
    straight = PairColumns(GOLD, NAMED, samples, np.tile(np.arange(2), 40))
    mixed = PairColumns(GOLD[order], NAMED[order], samples[order], np.tile(np.arange(2), 40)[order])
    for metric in ("pearson", "spearman"):
        figure = astuple(figure_of(metric, straight))
        assert astuple(figure_of(metric, mixed)) == pytest.approx(figure, abs=1e-12)


@pytest.mark.parametrize(("metric", "max_bytes"), [("spearman", 40), ("pearson", 44), ("mcc", 60)])
def test_memory_of_a_figure_over_many_answers(metric: str, max_bytes: int) -> None:
    """Bytes per answer at the peak, those of its row included; a bootstrap needs the same for any number."""
    rows = 1_000_000
    named = np.random.default_rng(2).random(rows)
    targets = np.arange(rows) % 7
    labels = (named * 3).astype(np.float64) // 1
    scoring = CompiledScoring(OutputType.GENERATE_UNTIL, (CompiledMetric(metric),))
    tracemalloc.start()
    try:
        columns = TaskColumns(scoring)
        for start in range(0, rows, 50_000):
            at = np.arange(start, start + 50_000)
            second = labels[at] if metric == "mcc" else named[at]
            chunk = ScoreChunk(at, np.zeros(50_000, np.int64), {metric: targets[at] % 3.0}, {metric: second})
            columns.add(chunk)
        figures = columns.figures(has_rollouts=False, clusters=None)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert figures[metric].n == rows
    assert peak < BOOTSTRAP_BYTES + max_bytes * rows


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_the_error_of_a_correlation_is_that_of_a_bootstrap_over_rows(metric: str) -> None:
    of = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}[metric]
    draws = [GENERATOR.integers(0, 80, 80) for _ in range(500)]
    resampled = [of(GOLD[draw], NAMED[draw])[0] for draw in draws]
    figure = figure_of(metric, PairColumns(GOLD, NAMED))
    assert figure.stderr == pytest.approx(np.std(resampled, ddof=1), rel=0.15)
    assert figure.ci_low == pytest.approx(np.percentile(resampled, 2.5), abs=0.05)
    assert figure.interval_method == "bootstrap"


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
@pytest.mark.parametrize("named", [[2.0, 2.0, 2.0], [0.1, 0.1, 0.1]])
def test_answers_that_are_all_the_same_have_no_correlation(metric: str, named: list[float]) -> None:
    assert figure_of(metric, PairColumns(np.array([1.0, 2.0, 3.0]), np.array(named))) == Figure(n=3)


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_one_sample_has_no_correlation_and_two_prove_nothing(metric: str) -> None:
    assert figure_of(metric, PairColumns(np.array([1.0]), np.array([1.0]))) == Figure(n=1)
    two = figure_of(metric, PairColumns(np.array([1.0, 2.0]), np.array([3.0, 5.0])))
    assert two.mean == pytest.approx(1.0)
    assert (two.n, two.ci_low, two.ci_high) == (2, None, None)


def test_large_numbers_lose_no_digits() -> None:
    columns = PairColumns(GOLD + 1e9, NAMED * 1e-9)
    assert figure_of("pearson", columns).mean == pytest.approx(stats.pearsonr(GOLD, NAMED)[0], abs=1e-6)


@pytest.mark.parametrize("huge", [1e20, 1e200, 1.7e308])
def test_a_huge_number_neither_overflows_nor_hides_the_order_of_the_others(huge: float) -> None:
    targets, named = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), np.array([1.0, 2.0, 4.0, 3.0, 5.0, huge])
    columns = PairColumns(targets, named)
    expected = stats.pearsonr(targets, named / huge)[0]
    assert figure_of("pearson", columns).mean == pytest.approx(expected, abs=1e-12)
    assert figure_of("spearman", columns).mean == pytest.approx(stats.spearmanr(targets, named)[0], abs=1e-12)


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_the_error_over_many_samples_is_that_of_a_part_of_them(
    metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = (np.arange(4000) % 7).astype(np.float64)
    columns = PairColumns(targets, targets + np.random.default_rng(1).normal(0, 3, 4000))
    whole = figure_of(metric, columns)
    monkeypatch.setattr(figure_module, "MAX_UNITS", 1000)
    part = figure_of(metric, columns)
    assert (part.mean, part.n) == (whole.mean, whole.n)
    assert part.stderr == pytest.approx(whole.stderr, rel=0.15)
    assert (part.ci_low, part.ci_high) == pytest.approx((whole.ci_low, whole.ci_high), abs=0.01)
    assert figure_of(metric, columns) == part


def test_every_sample_counts_once_however_many_rollouts_it_has() -> None:
    samples = np.repeat(np.arange(80), 3)
    thrice = PairColumns(GOLD[samples], NAMED[samples], samples, np.tile(np.arange(3), 80))
    once, repeated = figure_of("pearson", PairColumns(GOLD, NAMED)), figure_of("pearson", thrice)
    assert repeated.mean == pytest.approx(once.mean)
    assert repeated.n == 80
    assert repeated.stderr == pytest.approx(once.stderr)
    assert repeated.std == pytest.approx(0.0)


def test_clusters_are_drawn_as_a_whole() -> None:
    passages = np.repeat(np.arange(80), 3)
    tripled = PairColumns(GOLD[passages], NAMED[passages], clusters=passages)
    figure = figure_of("spearman", tripled)
    assert figure.n == 240
    assert figure.stderr == pytest.approx(figure_of("spearman", PairColumns(GOLD, NAMED)).stderr, rel=0.02)


def test_answers_without_a_number_are_left_out_and_counted_as_unparsed() -> None:
    scoring = CompiledScoring(
        OutputType.GENERATE_UNTIL, (CompiledMetric("pearson"), CompiledMetric("spearman"))
    )
    columns, unparsed = TaskColumns(scoring), 0
    answers = [("1", "2"), ("2", "It is 3.5."), ("3", "no idea"), ("4", "4.0 points"), ("5", "3 or 4")]
    for sample, (expected, text) in enumerate(answers):
        score = score_answer(scoring, ScoringTarget(texts=(expected,)), Answer(text))
        columns.add_rows([(sample, 0, score.scores)])
        unparsed += score.is_unparsed
    found = columns.figures(has_rollouts=False, clusters=None)
    assert unparsed == 2
    assert found["pearson"].n == 3
    assert found["pearson"].mean == pytest.approx(stats.pearsonr([1, 2, 4], [2, 3.5, 4])[0])


def test_a_stored_null_is_no_number_and_stops_no_figure() -> None:
    """JSON has no number for what overflowed."""
    scoring = CompiledScoring(
        OutputType.GENERATE_UNTIL, (CompiledMetric("pearson"), CompiledMetric("rouge1_max"))
    )
    stored = "[[[1, 2], 0.5], [[2, null], null], [[3, 3], 0.7], [[null, 1], 0.6], [[5, 4], 0.8]]"
    columns = TaskColumns(scoring)
    for sample, (pair, score) in enumerate(json.loads(stored)):
        columns.add_rows([(sample, 0, {"pearson": pair, "rouge1_max": score})])
    found = columns.figures(has_rollouts=False, clusters=None)
    assert (found["pearson"].n, found["rouge1_max"].n) == (3, 4)
    assert found["pearson"].mean == pytest.approx(stats.pearsonr([1, 3, 5], [2, 3, 4])[0])
    assert found["rouge1_max"].mean == pytest.approx(0.65)


def test_where_no_answer_has_a_number_there_is_no_figure() -> None:
    scoring = CompiledScoring(OutputType.GENERATE_UNTIL, (CompiledMetric("pearson"),))
    columns = TaskColumns(scoring)
    columns.add_rows([(0, 0, score_answer(scoring, ScoringTarget(texts=("1",)), Answer("none")).scores)])
    assert columns.figures(has_rollouts=False, clusters=None) == {"pearson": Figure()}
