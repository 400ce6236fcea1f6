"""The change point of a paired series: against a computation from rows, and its rates in simulations."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from proctor.cli.runs.trend import PairDifference, _groups, change_point

ROWS = 300


def pairs_of(scores: np.ndarray) -> dict[tuple[int, int], PairDifference]:
    """What comparisons say of each two runs; `scores` as (runs, rows)."""
    found = {}
    for a, b in combinations(range(len(scores)), 2):
        moved = scores[b] - scores[a]
        found[a, b] = PairDifference(float(moved.mean()), float(moved.var(ddof=1) / moved.size))
    return found


def by_rows(scores: np.ndarray) -> tuple[int, float, float]:
    """The same from the rows themselves: of each split the paired z over the means of a row."""
    count = len(scores)
    splits = []
    for at in range(1, count):
        moved = scores[at:].mean(axis=0) - scores[:at].mean(axis=0)
        splits.append((at, moved.mean(), moved.mean() / stats.sem(moved)))
    at, difference, z = max(splits, key=lambda one: abs(one[2]))
    return at, float(difference), float(min(1, (count - 1) * 2 * stats.norm.sf(abs(z))))


def series(drawn: np.random.Generator, drops: list[float]) -> np.ndarray:
    """Right and wrong answers whose rows differ in difficulty, as those of a suite do."""
    hard = drawn.beta(2, 2, ROWS)
    return np.array([drawn.random(ROWS) < np.clip(hard - drop, 0, 1) for drop in drops], dtype=float)


@pytest.mark.parametrize("seed", range(5))
def test_change_point_is_that_of_the_rows(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    scores = series(drawn, list(drawn.uniform(0, 0.1, 7)))
    found = change_point(pairs_of(scores), len(scores))
    assert found
    at, difference, p_value = by_rows(scores)
    assert found.at == at
    assert (found.difference, found.p_value) == pytest.approx((difference, p_value), rel=1e-9)


def test_without_a_change_it_is_shown_in_at_most_five_percent() -> None:
    drawn = np.random.default_rng(1)
    found = [change_point(pairs_of(series(drawn, [0.0] * 6)), 6) for _ in range(2000)]
    assert sum(one.is_shown for one in found if one) <= 0.06 * len(found)


def test_planted_drop_is_found_where_it_is() -> None:
    drawn = np.random.default_rng(2)
    found = [change_point(pairs_of(series(drawn, [0, 0, 0, 0, 0.1, 0.1, 0.1])), 7) for _ in range(200)]
    assert sum(bool(one and one.is_shown and one.at == 4) for one in found) >= 0.8 * len(found)
    covered = sum(bool(one and one.low <= -0.1 <= one.high) for one in found)
    # Drops are cut off at rows that are answered wrong anyway, so the mean one is a little smaller.
    assert covered >= 0.9 * len(found)


def test_runs_that_answer_alike_allow_no_test() -> None:
    assert change_point(pairs_of(np.ones((4, ROWS))), 4) is None


@pytest.mark.parametrize("count", [3, 4, 7, 20])
def test_each_pair_is_compared_and_no_call_has_more_than_six(count: int) -> None:
    runs = [str(number) for number in range(count)]
    groups = [*_groups(runs)]
    assert {pair for group in groups for pair in combinations(group, 2)} == {*combinations(runs, 2)}
    assert max(map(len, groups)) <= 6
    assert min(map(len, groups)) >= 2
