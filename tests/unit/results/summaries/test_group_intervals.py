"""Intervals of groups of tasks: known special cases, and that they cover what they promise."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from proctor.values.scoring import TaskGroup
from services.results.statistics.columns import PairColumns
from services.results.statistics.figure import Figure, figure_of
from services.results.statistics.metric_names import SCORE
from services.results.statistics.sample_scores import ScoreColumns
from services.results.summaries.group_figures import group_summary
from tests.fakes.thorough_cases import first_cases

SCALE = (0.31, 0.42, 0.55, 0.63, 0.7, 0.78, 0.85, 0.91, 0.95, 0.99)


def summed_up(figures: Sequence[Figure], name: str = "acc") -> Figure:
    """By size as "acc"; each task the same as "score"."""
    by_task = {f"t{index}": {"acc": figure} for index, figure in enumerate(figures)}
    return group_summary(TaskGroup("suite", tuple(by_task)), by_task).figures[name]


def ends(figure: Figure) -> tuple[float, float]:
    assert figure.ci_low is not None
    assert figure.ci_high is not None
    return figure.ci_low, figure.ci_high


@cache
def right_of(right: int, count: int) -> Figure:
    return figure_of("acc", ScoreColumns(np.array([1.0] * right + [0.0] * (count - right))))


def mean_of(values: NDArray[np.float64]) -> Figure:
    return figure_of("bleu_max", ScoreColumns(values))


@pytest.mark.parametrize("right", [0, 10])
@pytest.mark.parametrize("tasks", [2, 7])
def test_equal_tasks_that_are_all_right_or_all_wrong_leave_as_much_doubt_as_one_of_their_size(
    right: int, tasks: int
) -> None:
    figure = summed_up([right_of(right, 10)] * tasks)
    expected = proportion_confint(right * tasks, 10 * tasks, method="wilson")
    assert ends(figure) == pytest.approx(expected, abs=1e-9)
    assert (figure.stderr, figure.interval_method) == (0.0, "wilson")


@pytest.mark.parametrize("name", ["acc", SCORE])
def test_the_interval_of_shares_stays_between_0_and_1_and_around_the_figure(name: str) -> None:
    for rights in [(3, 3, 2), (0, 0, 1), (0, 3, 3), (1, 0, 3)]:
        figure = summed_up([right_of(right, 3) for right in rights], name)
        low, high = ends(figure)
        assert figure.mean is not None
        assert 0.0 <= low < figure.mean < high <= 1.0


def test_large_tasks_have_the_interval_of_their_error() -> None:
    figure = summed_up([right_of(60_000, 100_000), right_of(90_000, 100_000)], SCORE)
    assert figure.mean is not None
    assert figure.stderr is not None
    half = 1.959963984540054 * figure.stderr
    assert ends(figure) == pytest.approx((figure.mean - half, figure.mean + half), abs=1e-5)


def test_means_of_numbers_have_the_interval_of_welch() -> None:
    generator = np.random.default_rng(1)
    first, second = generator.normal(0.4, 0.1, 8), generator.normal(0.6, 0.3, 5)
    # Half the difference to the mirrored second mean is the mean of both.
    welch = stats.ttest_ind(first, -second, equal_var=False).confidence_interval()
    figure = summed_up([mean_of(first), mean_of(second)], SCORE)
    assert ends(figure) == pytest.approx((welch.low / 2, welch.high / 2), abs=1e-9)
    assert figure.interval_method == "mover"


def rewards(*values: float) -> Figure:
    return figure_of("reward", ScoreColumns(np.array(values)))


def test_tasks_whose_intervals_are_cut_at_1_have_the_interval_of_welch_cut_at_1() -> None:
    """A cut end is only shown: the group is made of the whole interval, as that of numbers without bounds."""
    first, second = [1.0, 1.0, 1.0, 0.2], [1.0, 0.9, 1.0, 1.0, 0.7]
    assert [ends(rewards(*values))[1] for values in (first, second)] == [1.0, 1.0]
    unbounded = summed_up([mean_of(np.array(first)), mean_of(np.array(second))], SCORE)
    low, high = ends(summed_up([rewards(*first), rewards(*second)], SCORE))
    assert low == ends(unbounded)[0]
    assert ends(unbounded)[1] > high == 1.0


def test_tasks_of_several_kinds_reach_as_far_as_their_squares_added() -> None:
    generator = np.random.default_rng(2)
    targets = generator.integers(0, 2, 80)
    labels = figure_of("f1", PairColumns(targets, np.where(generator.random(80) < 0.8, targets, 1 - targets)))
    share = right_of(31, 40)
    figure = summed_up([share, labels], SCORE)
    assert figure.mean is not None
    assert share.mean is not None
    assert labels.mean is not None
    below = np.hypot(share.mean - ends(share)[0], labels.mean - ends(labels)[0]) / 2
    assert figure.mean - ends(figure)[0] == pytest.approx(below, rel=0.05)
    assert figure.interval_method == "mover"


def coverage(
    truths: Sequence[float], sizes: Sequence[int], name: str, draw: Callable[[], list[Figure]]
) -> float:
    truth = float(np.average(truths, weights=sizes if name == "acc" else None))
    intervals = [ends(summed_up(draw(), name)) for _ in range(1500)]
    return sum(low <= truth <= high for low, high in intervals) / len(intervals)


@pytest.mark.parametrize("name", ["acc", SCORE])
@first_cases(
    3,
    ("shares", "sizes"),
    [
        ((0.95,) * 3, (30,) * 3),
        ((0.98,) * 4, (40,) * 4),
        ((0.9,) * 3, (5,) * 3),
        ((0.98,) * 57, (5,) * 57),
        ((0.5,) * 57, (5,) * 57),
        (SCALE, (12, 150, 40, 90, 33, 200, 61, 25, 80, 120)),
        ((0.7, 0.8), (250, 1000)),
        ((0.5, 0.9, 0.98), (100, 40, 20)),
    ],
)
def test_the_interval_of_a_group_of_shares_covers_it(
    shares: Sequence[float], sizes: Sequence[int], name: str
) -> None:
    generator = np.random.default_rng(3)

    def draw() -> list[Figure]:
        drawn = generator.binomial(sizes, shares)
        return [right_of(int(right), size) for right, size in zip(drawn, sizes, strict=True)]

    assert 0.93 <= coverage(shares, sizes, name, draw) <= 0.97


@pytest.mark.parametrize("name", ["acc", SCORE])
@pytest.mark.parametrize(("shares", "sizes"), [((0.95,) * 3, (10,) * 3), ((0.03,) * 2, (50,) * 2)])
def test_over_few_samples_at_the_edge_it_covers_as_far_as_whole_counts_allow(
    shares: Sequence[float], sizes: Sequence[int], name: str
) -> None:
    generator = np.random.default_rng(4)

    def draw() -> list[Figure]:
        drawn = generator.binomial(sizes, shares)
        return [right_of(int(right), size) for right, size in zip(drawn, sizes, strict=True)]

    assert 0.92 <= coverage(shares, sizes, name, draw) <= 0.985


@first_cases(1, "sizes", [(5, 5, 5), (10, 10), (5, 50, 200)])
def test_the_interval_of_a_group_of_means_covers_it(sizes: Sequence[int]) -> None:
    generator = np.random.default_rng(5)

    def draw() -> list[Figure]:
        return [mean_of(generator.normal(0.5, 0.2, size)) for size in sizes]

    assert 0.93 <= coverage([0.5] * len(sizes), sizes, SCORE, draw) <= 0.97


def test_the_interval_of_a_group_of_shares_and_means_covers_it() -> None:
    generator = np.random.default_rng(6)

    def draw() -> list[Figure]:
        shares = [right_of(int(generator.binomial(40, share)), 40) for share in (0.6, 0.9, 0.97)]
        return [*shares, mean_of(generator.normal(0.5, 0.3, 12)), mean_of(generator.normal(0.2, 0.1, 30))]

    assert 0.93 <= coverage((0.6, 0.9, 0.97, 0.5, 0.2), (40, 40, 40, 12, 30), SCORE, draw) <= 0.97
