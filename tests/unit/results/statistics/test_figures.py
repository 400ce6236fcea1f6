"""Figures equal closed forms; what is undefined is None, never NaN."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from proctor.values.metrics.metric import ScoreKind
from proctor.values.metrics.names import kind_of
from services.results.statistics import figure as figure_module
from services.results.statistics.columns import PairColumns
from services.results.statistics.figure import Figure, figure_of
from services.results.statistics.sample_scores import ScoreColumns

GENERATOR = np.random.default_rng(7)


Labels = NDArray[Any]


def f1_by_the_book(targets: Labels, predicted: Labels) -> float:
    hits = int(((targets == 1) & (predicted == 1)).sum())
    precision, recall = hits / int((predicted == 1).sum()), hits / int((targets == 1).sum())
    return 2 * precision * recall / (precision + recall)


def mcc_by_the_book(targets: Labels, predicted: Labels) -> float:
    """The correlation of the two columns, each label as a unit vector."""
    one_hot = np.eye(int(max(targets.max(), predicted.max())) + 1)
    x, y = (
        one_hot[targets] - one_hot[targets].mean(axis=0),
        one_hot[predicted] - one_hot[predicted].mean(axis=0),
    )
    return float((x * y).sum() / math.sqrt((x * x).sum() * (y * y).sum()))


BY_THE_BOOK = [("f1", f1_by_the_book), ("mcc", mcc_by_the_book)]


def numbers(*values: int) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def scores(*values: float) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


def labels(count: int, classes: int = 2, agreement: float = 0.8) -> PairColumns:
    targets = GENERATOR.integers(0, classes, count)
    other = GENERATOR.integers(0, classes, count)
    return PairColumns(targets, np.where(GENERATOR.random(count) < agreement, targets, other))


def test_a_mean_has_the_standard_error_of_the_sample_deviation() -> None:
    values = scores(0.1, 0.5, 0.4, 0.9)
    figure = figure_of("score", ScoreColumns(values))
    assert figure.mean == pytest.approx(0.475)
    assert figure.stderr == pytest.approx(values.std(ddof=1) / 2)
    assert figure.std == figure.stderr
    assert figure.n == 4


def test_the_interval_of_a_mean_is_students() -> None:
    figure = figure_of("score", ScoreColumns(scores(0.1, 0.5, 0.4, 0.9)))
    assert figure.mean is not None
    assert figure.stderr is not None
    assert figure.interval_method == "student-t"
    assert figure.ci_high == pytest.approx(figure.mean + 3.182446305 * figure.stderr)
    assert figure.ci_low == pytest.approx(figure.mean - 3.182446305 * figure.stderr)


def test_the_interval_of_a_proportion_is_wilsons() -> None:
    figure = figure_of("acc", ScoreColumns(scores(*[1.0] * 7, *[0.0] * 3)))
    assert figure.interval_method == "wilson"
    assert figure.ci_low == pytest.approx(0.3967781)
    assert figure.ci_high == pytest.approx(0.8922087)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_ten_of_ten_leave_room_for_doubt(value: float) -> None:
    figure = figure_of("acc", ScoreColumns(scores(*[value] * 10)))
    assert figure.stderr == 0.0
    assert figure.ci_low is not None
    assert figure.ci_high is not None
    assert figure.ci_high - figure.ci_low == pytest.approx(0.2775328)
    assert figure.ci_low <= value <= figure.ci_high


def test_scores_in_per_cent_that_happen_to_be_0_are_not_right_or_wrong() -> None:
    figure = figure_of("bleu_diff", ScoreColumns(scores(*[0.0] * 20)))
    assert (figure.mean, figure.ci_low, figure.interval_method) == (0.0, None, "")
    figure = figure_of("squad_f1,strict", ScoreColumns(scores(*[1.0] * 6, *[0.0] * 4)))
    assert figure.interval_method == "student-t"


def test_a_share_in_percent_is_not_cut_at_1() -> None:
    figure = figure_of("acc", ScoreColumns(np.array([55.0, 57.0, 60.0])))
    assert figure.mean is not None
    assert figure.ci_low is not None
    assert figure.ci_high is not None
    assert figure.ci_low < figure.mean < figure.ci_high


@pytest.mark.parametrize("metric", ["acc", "squad_f1", "mc2", "reward", "pass@4", "squad_f1,strict"])
def test_the_interval_of_a_share_lies_within_0_and_1(metric: str) -> None:
    figure = figure_of(metric, ScoreColumns(scores(1.0, 1.0, 0.9)))
    assert figure.is_fraction
    assert figure.ci_high == 1.0
    points = figure_of("bleu_max", ScoreColumns(scores(1.0, 1.0, 0.9)))
    assert not points.is_fraction
    assert points.ci_high is not None
    assert points.ci_high > 1.0


@pytest.mark.parametrize("metric", ["acc", "f1", "mcc"])
def test_nothing_has_no_figure_and_one_sample_no_spread(metric: str) -> None:
    if kind_of(metric) is ScoreKind.LABELS:
        nothing: ScoreColumns | PairColumns = PairColumns(numbers(), numbers())
        one: ScoreColumns | PairColumns = PairColumns(numbers(1), numbers(1))
    else:
        nothing, one = ScoreColumns(scores()), ScoreColumns(scores(1.0))
    assert figure_of(metric, nothing) == Figure()
    figure = figure_of(metric, one)
    assert figure.mean is not None
    assert not math.isnan(figure.mean)
    assert (figure.n, figure.std, figure.stderr, figure.ci_low, figure.ci_high) == (1, None, None, None, None)


def test_rollouts_are_averaged_per_sample_before_samples_are_compared() -> None:
    columns = ScoreColumns(
        scores(1, 1, 0, 0, 1, 0), samples=numbers(0, 0, 1, 1, 2, 2), rollouts=numbers(0, 1, 0, 1, 0, 1)
    )
    figure = figure_of("acc", columns)
    assert figure.n == 3
    assert figure.mean == pytest.approx(0.5)
    assert figure.stderr == pytest.approx(np.std([1, 0, 0.5], ddof=1) / math.sqrt(3))
    assert figure.std == pytest.approx(np.std([2 / 3, 1 / 3], ddof=1))


def test_rollouts_of_one_sample_have_a_spread_but_no_standard_error() -> None:
    columns = ScoreColumns(scores(1, 0), samples=numbers(0, 0), rollouts=numbers(0, 1))
    figure = figure_of("acc", columns)
    assert (figure.mean, figure.n, figure.stderr) == (0.5, 1, None)
    assert figure.std == pytest.approx(math.sqrt(0.5))


def test_a_sample_with_fewer_rollouts_weighs_as_much_as_the_others() -> None:
    columns = ScoreColumns(scores(1, 1, 1, 0), samples=numbers(0, 0, 0, 1), rollouts=numbers(0, 1, 2, 0))
    assert figure_of("acc", columns).mean == pytest.approx(0.5)


def test_samples_of_one_passage_are_not_taken_for_independent() -> None:
    values = scores(1, 1, 1, 0, 0, 0, 1, 1)
    unranked = figure_of("acc", ScoreColumns(values))
    together = figure_of("acc", ScoreColumns(values, clusters=numbers(0, 0, 0, 1, 1, 1, 2, 2)))
    assert together.mean == unranked.mean
    assert together.stderr is not None
    assert unranked.stderr is not None
    assert together.stderr > 1.5 * unranked.stderr


def test_clusters_of_one_are_no_clusters() -> None:
    values = scores(0.1, 0.5, 0.4, 0.9)
    alone = figure_of("score", ScoreColumns(values, clusters=numbers(4, 3, 2, 1)))
    assert alone.stderr == pytest.approx(figure_of("score", ScoreColumns(values)).stderr)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize(("metric", "by_the_book"), BY_THE_BOOK)
def test_label_figures_are_those_of_the_book(
    metric: str, by_the_book: Callable[[Labels, Labels], float], classes: int
) -> None:
    columns = labels(200, classes)
    expected = by_the_book(columns.target, columns.predicted)
    assert figure_of(metric, columns).mean == pytest.approx(expected, abs=1e-12)


def f1_of_label(targets: Labels, predicted: Labels, label: int) -> float:
    hits = int(((targets == label) & (predicted == label)).sum())
    both = int((targets == label).sum() + (predicted == label).sum())
    return 2 * hits / both if both else 0.0


def test_an_f1_over_several_labels_is_their_mean() -> None:
    columns = labels(120, classes=4)
    by_label = [f1_of_label(columns.target, columns.predicted, label) for label in range(4)]
    macro = figure_of("f1", columns, "macro")
    assert macro.mean == pytest.approx(np.mean(by_label))
    assert macro.stderr is not None
    weighted = np.average(by_label, weights=np.bincount(columns.target, minlength=4))
    assert figure_of("f1", columns, "weighted").mean == pytest.approx(weighted)
    accuracy = float((columns.target == columns.predicted).mean())
    assert figure_of("f1", columns, "micro").mean == pytest.approx(accuracy)


@pytest.mark.parametrize(("average", "mean"), [("macro", (1 + 0 + 2 / 3) / 3), ("micro", 2 * 2 / (3 + 2))])
def test_an_unread_label_is_no_label_of_its_own(average: str, mean: float) -> None:
    """A label in the middle that never occurs counts as 0, as in lm-evaluation-harness's cb."""
    columns = PairColumns(numbers(0, 2, 2), numbers(0, 2, -1))
    assert figure_of("f1", columns, average).mean == pytest.approx(mean)


def test_a_label_of_the_task_that_never_occurs_counts_as_0() -> None:
    """Also behind the largest one that does: lm-evaluation-harness's cb has three labels in any case."""
    columns = PairColumns(numbers(0, 1, 0, 1), numbers(0, 1, 0, 1))
    assert figure_of("f1", columns, "macro", label_count=3).mean == pytest.approx(2 / 3)
    assert figure_of("f1", columns, "macro").mean == 1.0
    assert figure_of("f1", columns, "micro", label_count=3).mean == 1.0


@pytest.mark.parametrize("metric", ["f1", "mcc"])
def test_one_label_only_gives_zero(metric: str) -> None:
    columns = PairColumns(numbers(0, 0, 0), numbers(0, 0, 0))
    assert figure_of(metric, columns).mean == 0.0


@pytest.mark.parametrize(("metric", "by_the_book"), BY_THE_BOOK)
def test_the_error_of_a_label_figure_is_that_of_a_bootstrap_over_rows(
    metric: str, by_the_book: Callable[[Labels, Labels], float]
) -> None:
    columns = labels(120)
    draws = [GENERATOR.integers(0, 120, 120) for _ in range(400)]
    resampled = [by_the_book(columns.target[draw], columns.predicted[draw]) for draw in draws]
    figure = figure_of(metric, columns)
    assert figure.stderr == pytest.approx(np.std(resampled, ddof=1), rel=0.2)
    assert figure.ci_low == pytest.approx(np.percentile(resampled, 2.5), abs=0.05)
    assert figure.ci_high == pytest.approx(np.percentile(resampled, 97.5), abs=0.05)


def test_the_same_scores_give_the_same_error() -> None:
    columns = labels(50)
    assert figure_of("f1", columns) == figure_of("f1", columns)


def test_an_unread_label_is_a_wrong_one() -> None:
    read = figure_of("f1", PairColumns(numbers(1, 1, 0, 0), numbers(1, 0, 0, 0)))
    unread = figure_of("f1", PairColumns(numbers(1, 1, 0, 0), numbers(1, -1, 0, 0)))
    assert unread.mean == read.mean


def test_rollouts_of_labels_are_resampled_by_sample() -> None:
    once = labels(300)
    samples = np.repeat(np.arange(300), 3)
    thrice = PairColumns(
        np.repeat(once.target, 3), np.repeat(once.predicted, 3), samples, np.tile(np.arange(3), 300)
    )
    figure, repeated = figure_of("mcc", once), figure_of("mcc", thrice)
    assert repeated.n == 300
    assert repeated.mean == pytest.approx(figure.mean)
    assert repeated.stderr == pytest.approx(figure.stderr, rel=0.1)
    assert repeated.std == pytest.approx(0.0)


def test_clusters_of_labels_are_resampled_as_a_whole() -> None:
    once = labels(100)
    tripled = PairColumns(
        np.repeat(once.target, 3), np.repeat(once.predicted, 3), clusters=np.repeat(np.arange(100), 3)
    )
    assert figure_of("f1", tripled).stderr == pytest.approx(figure_of("f1", once).stderr, rel=0.1)
    assert figure_of("f1", tripled).n == 300


@pytest.mark.parametrize("metric", ["f1", "mcc"])
def test_the_error_over_many_patterns_is_that_of_a_part_of_the_units(
    metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = labels(6000, classes=3)
    clustered = PairColumns(columns.target, columns.predicted, clusters=np.arange(6000) // 3)
    whole = figure_of(metric, clustered)
    monkeypatch.setattr(figure_module, "MAX_UNITS", 60)
    part = figure_of(metric, clustered)
    assert (part.mean, part.n) == (whole.mean, whole.n)
    assert part.stderr == pytest.approx(whole.stderr, rel=0.3)
